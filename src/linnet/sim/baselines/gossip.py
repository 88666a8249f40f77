"""The interface between a bench of peer sampling and the ways to sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, Protocol

from linnet.core.ids import PeerId


class Entry(NamedTuple):
    """A node in a view or a message, and how many rounds ago it sent this news."""

    peer: PeerId
    age: int


Entries = tuple[Entry, ...]


class Ask(NamedTuple):
    """A message of a node to another at the beginning of a round."""

    peer: PeerId
    entries: Entries
    is_answered: bool


class Gossip(Protocol):
    """One node. A round is: `begin`, the questions of all nodes with their answers, `end`."""

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The peers in the node's view."""

    def begin(self) -> list[Ask]:
        """Return the messages of the node in this round."""

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """Take in a message; return the answer, which is lost if none was asked for."""

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Take in an answer."""

    def unanswered(self, peer: PeerId) -> None:
        """Note that no answer came."""

    def end(self) -> None:
        """End the round."""


Made = Callable[[PeerId, Sequence[PeerId], Sequence[PeerId], Random], Gossip]
"""Makes a node from its id, the first peers that it knows, those that it trusts, and its generator."""


class Way(NamedTuple):
    """A way to sample: how a node is made, and what a liar can do within the form of its messages."""

    make: Made
    answer: int
    """Entries in an answer."""
    sent: int
    """Entries that a question may carry; the first is always the sender."""
    asks: int = 1
    """Questions of a node in a round."""


def fresh(peers: Sequence[PeerId]) -> Entries:
    """Make entries of peers, all of age zero."""
    return tuple([Entry(peer, 0) for peer in peers])
