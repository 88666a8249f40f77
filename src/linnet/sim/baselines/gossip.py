"""What a bench of peer sampling needs of a way to sample, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, Protocol

from linnet.core.ids import PeerId


class Entry(NamedTuple):
    """A node in a view or a message, and how many rounds ago its news left it."""

    peer: PeerId
    age: int


Entries = tuple[Entry, ...]


class Ask(NamedTuple):
    """What a node sends to another at the beginning of a round."""

    peer: PeerId
    entries: Entries
    is_answered: bool


class Gossip(Protocol):
    """One node. A round is: `begin`, the questions of all nodes with their answers, `end`."""

    @property
    def view(self) -> tuple[PeerId, ...]:
        """Whom it knows."""

    def begin(self) -> list[Ask]:
        """What it sends in this round."""

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """Something came; returns the answer, which is lost if none was asked for."""

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """An answer came."""

    def unanswered(self, peer: PeerId) -> None:
        """No answer came."""

    def end(self) -> None:
        """The round is over."""


Made = Callable[[PeerId, Sequence[PeerId], Sequence[PeerId], Random], Gossip]
"""Makes a node from its id, the first nodes that it knows, those that it trusts, and its luck."""


class Way(NamedTuple):
    """A way to sample: how a node is made, and what a liar can do within the form of its messages."""

    make: Made
    answer: int
    """Entries in an answer."""
    sent: int
    """Entries that whoever asks may send along; the first is always the sender."""
    asks: int = 1
    """Questions of a node in a round."""


def fresh(peers: Sequence[PeerId]) -> Entries:
    """Entries of peers, all as young as can be."""
    return tuple([Entry(peer, 0) for peer in peers])
