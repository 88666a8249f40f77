"""Reaching the node of a home, and what streams are called there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linnet.node.client import ControlClient

OWN = "me/"
"""Before the name of a stream: it belongs to the person of this home."""


def control(home: Path | None) -> ControlClient:
    """A client of the node that runs in this home; `NodeUnreachable` when it is first asked."""
    from linnet.node.client import ControlClient

    return ControlClient(home)


def stream_name(stream: str, home: Path | None) -> str:
    """The full name of a stream: ``me/x`` is the stream x of this home's person.

    Raises `BadText` if this cannot be the name of a stream.
    """
    from linnet.cli.output import warn
    from linnet.streams.stream_names import check_name, check_typed, wildcards

    if stream.startswith(OWN):
        stream = f"{_person(home)}/{stream.removeprefix(OWN)}"
    check_name(stream)
    check_typed(stream)
    wild = wildcards(stream)
    if wild is not None:
        warn(
            f"linnet: names of streams are literal: {wild!r} in {stream!r} stands for no other name; "
            "to subscribe to whatever has an attribute: linnet content subscribe"
        )
    return stream


def _person(home: Path | None) -> str:
    from linnet.identity.text import Sort, to_text
    from linnet.node.home import Home, HomeError, home_path
    from linnet.node.keyfiles import load_card

    at = Home(home_path(home))
    if not at.path.is_dir():
        raise HomeError(f"{at.path}: there is no home, so nobody is me; make one with: linnet init")
    return to_text(Sort.PERSON, load_card(at.card).person)
