"""``linnet id recover``: a new device of a person, from the words of a backup."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.identity.phrases import PhraseOption
from linnet.cli.init import Label, Listens, Trackers
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import warn

EPILOG = examples(
    'linnet id recover --label "new laptop"',
    "linnet id recover --phrase-file - --person lp1… < words.txt",
    "linnet id recover --phrase-file words.txt --home ~/.linnet-new",
)

Person = Annotated[
    str | None, typer.Option("--person", metavar="PERSON", help="Whose words they should be, lp1….")
]

KeepKey = Annotated[
    bool, typer.Option("--keep-key", help="Keep the person's key here: who has this machine is then you.")
]


def recover(
    phrase_file: PhraseOption = None,
    person: Person = None,
    label: Label = "",
    tracker: Trackers = None,
    listen: Listens = None,
    keep_key: KeepKey = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a home for a new device of the person whose 24 words linnet id backup printed.

    The words are asked for and not shown, or read from a file that only you can read. They sign the
    device's card, and are not kept unless you say so. Nothing is overwritten, and nothing but the person
    comes back: the device is new in every room.
    """
    from linnet.cli.identity.phrases import read_phrase
    from linnet.cli.init import first_config, tell_home
    from linnet.cli.moments import wall_clock
    from linnet.identity.keys import SigningKey
    from linnet.identity.phrase import from_phrase
    from linnet.identity.text import Sort, from_text, to_text
    from linnet.node import home as homes

    path = homes.home_path(home)
    # Before anybody types 24 words for nothing.
    homes.check_vacant(path)
    config = first_config(label, tracker, listen)
    wanted = None if person is None else from_text(Sort.PERSON, person)
    key = SigningKey(from_phrase(read_phrase(phrase_file)))
    if wanted is not None and wanted != key.public:
        found = to_text(Sort.PERSON, key.public)
        raise Failure(f"these are the words of {found}, not of that person; is one wrong?", ExitCode.USAGE)
    tell_home(homes.init(path, wall_clock(), config, key, keep_key), home, as_json)
    if wanted is None:
        warn("Compare the person with what you wrote down: one wrong phrase in 256 looks right.")
    warn("Join your rooms again, then take a lost device out of them: linnet id devices, linnet id revoke.")
