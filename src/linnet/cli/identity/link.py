"""``linnet id link``: a card for one more device of yours, which gets nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.identity.phrases import PhraseOption
from linnet.cli.init import Label
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, warn

EPILOG = examples("linnet id link ld1… --label phone", "linnet id link ld1… --phrase-file words.txt")

Device = Annotated[
    str, typer.Argument(metavar="DEVICE", help="The new device's whole key, ld1…: linnet id ask prints it.")
]


def link(
    device: Device,
    label: Label = "",
    phrase_file: PhraseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a card that says for a year that a device is yours; linnet id accept takes it there.

    Say it again before the year is over, for the same device. The person's key signs the card; where
    this home does not hold it, its 24 words do.
    """
    from linnet.cli.identity.person import person_key
    from linnet.cli.moments import clock_text, wall_clock
    from linnet.identity.card_text import card_to_text
    from linnet.identity.text import Sort, from_text
    from linnet.node.home import new_card

    key = from_text(Sort.DEVICE, device)
    card = new_card(person_key(home, phrase_file), key, wall_clock(), label)
    text = card_to_text(card)
    if as_json:
        say_json({"card": text, "ends": card.not_after})
        return
    warn(
        f"Good until {clock_text(card.not_after)[:10]}. On the device: linnet id accept CARD, with this card:"
    )
    say(text)
