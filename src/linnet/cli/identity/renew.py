"""``linnet id renew``: a new card for this device, by the person's key or its words."""

from __future__ import annotations

from linnet.cli.identity.phrases import PhraseOption
from linnet.cli.init import tell_home
from linnet.cli.options import HomeOption, JsonOption, examples

EPILOG = examples("linnet id renew --phrase-file words.txt", "linnet id renew --phrase-file -")


def renew(phrase_file: PhraseOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make this device's card good for another year. The words sign it and are not kept.

    A home that holds the person's key does this by itself when a node starts. A node that runs here
    uses the card after its next start.
    """
    from linnet.cli.identity.person import person_key
    from linnet.cli.moments import wall_clock
    from linnet.node import home as homes
    from linnet.node.keyfiles import load_card

    at = homes.Home(homes.home_path(home))
    key = person_key(home, phrase_file)
    old = load_card(at.card)
    card = homes.new_card(key, old.device_key, wall_clock(), old.label)
    tell_home(homes.accept(at.path, card, wall_clock()), home, as_json)
