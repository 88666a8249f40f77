"""``linnet id accept``: take the card that a device of yours with your key has made for this one."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.init import tell_home
from linnet.cli.options import HomeOption, JsonOption, examples

EPILOG = examples("linnet id accept lc1…")

CardText = Annotated[str, typer.Argument(metavar="CARD", help="What linnet id link printed, lc1….")]


def accept(card: CardText, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Put a card into this home: its first, or one that goes on after the present one.

    A node that runs here uses it after its next start.
    """
    from linnet.cli.moments import wall_clock
    from linnet.identity.card_text import card_from_text
    from linnet.node import home as homes

    tell_home(homes.accept(homes.home_path(home), card_from_text(card), wall_clock()), home, as_json)
