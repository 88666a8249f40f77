"""How often a node dials where nobody has ever answered with the key that it wants.

Anyone can name an address: as its own, in a record that it signs, or as a tracker. Each of its neighbours
then dials there, for each of its keys. So that nobody can have a crowd knock at somebody else's door,
attempts without an answer are few for each address, machine and network, however many peers name it. An
attempt that finds the right key costs nothing, and each address of a machine that ever showed one gives the
machine and its network as much again: many honest peers behind one address are all dialled.

Free are: who answered there before, whom the application or the configuration names, and this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.net.address import parse_address
from linnet.net.admission import address_of, network_around
from linnet.net.failure import LinkFailure

_HOUR = 3600.0
_MOST_PROVEN = 63
"""The most addresses of a machine or a network that add to what it is given."""
_REMEMBERED = 8192
"""The most destinations, peers that answered and names that led to one that are remembered; the oldest are
forgotten."""


class _Terms(NamedTuple):
    """What a destination is given at first, and in an hour."""

    burst: float
    per_hour: float


_ADDRESS = _Terms(20, 12)
"""A peer that does not answer is dialled so often in its first six minutes; then each five."""
_MACHINE = _Terms(40, 24)
_NETWORK = _Terms(160, 96)


class Turn(Enum):
    """Whether a place may be dialled."""

    GO = "go"
    WAIT = "wait"
    """All that is left is in use by attempts under way, which give it back if they succeed."""
    REFUSED = "refused"


class _Purse(Struct, eq=False):
    """What is left for one destination."""

    left: float
    at: float
    under_way: int = 0
    proven: dict[str, None] = {}
    """Addresses of it that have shown a key which was wanted."""


class DialBudget:
    """Decides about attempts to dial resolved addresses. After each `take` that says GO comes `give_back`."""

    def __init__(self) -> None:
        self._purses: dict[str, _Purse] = {}
        self._answered: dict[tuple[PeerId, str], None] = {}
        """Who has answered where; the latest are last."""
        self._led: dict[str, None] = {}
        """The names that led to whom they were said to; the latest are last."""
        self._paid: dict[tuple[PeerId, str], int] = {}
        """How many attempts under way were taken from the budgets, by peer and place."""

    def take(self, peer: PeerId, place: str, now: float) -> Turn:
        """Take an attempt to dial a place for this peer from all budgets, if they have one left."""
        if (peer, place) in self._answered:
            return Turn.GO
        purses = [(self._purse(name, terms, now), name) for name, terms in _destinations(place)]
        empty = [purse for purse, _ in purses if purse.left < 1.0]
        if empty:
            return Turn.WAIT if all(purse.under_way for purse in empty) else Turn.REFUSED
        for purse, _ in purses:
            purse.left -= 1.0
            purse.under_way += 1
        if purses:
            self._paid[peer, place] = self._paid.get((peer, place), 0) + 1
        return Turn.GO

    def give_back(self, peer: PeerId, place: str, answered: bool, now: float, has_left: bool = True) -> None:
        """End an attempt; one that was answered by the right key cost nothing, nor does one that never left.

        Meanwhile its peer may have been found there, or it was free from the beginning.
        """
        paid = self._paid.pop((peer, place), 0)
        if paid > 1:
            self._paid[peer, place] = paid - 1
        if not paid and (not answered or (peer, place) in self._answered):
            return
        for name, terms in _destinations(place):
            purse = self._purse(name, terms, now)
            purse.under_way = max(0, purse.under_way - (paid > 0))
            purse.left += paid > 0 and (answered or not has_left)
            if not answered:
                continue
            if terms is not _ADDRESS and place not in purse.proven and len(purse.proven) < _MOST_PROVEN:
                purse.proven = {**purse.proven, place: None}
                purse.left += terms.burst
        if answered:
            self.note_found(peer, place)

    def note_found(self, peer: PeerId, place: str) -> None:
        """Note who answers at a place: nobody uses up the attempts of its real owner there any more."""
        self._answered.pop((peer, place), None)
        self._answered[peer, place] = None
        if len(self._answered) > _REMEMBERED:
            del self._answered[next(iter(self._answered))]

    def may_look_up(self, name: str, now: float) -> bool:
        """Return whether to look up the addresses of a host name; those of one owner share what there is.

        Many share the owner of a name that costs nothing, so a name that led to its peer before is free.
        """
        if name in self._led:
            return True
        purse = self._purse(f"names of {_owner_of(name)}", _NETWORK, now)
        if purse.left < 1.0:
            return False
        purse.left -= 1.0
        return True

    def note_led(self, name: str) -> None:
        """Note that a host name led to the peer that was said to be there."""
        self._led.pop(name, None)
        self._led[name] = None
        if len(self._led) > _REMEMBERED:
            del self._led[next(iter(self._led))]

    def _purse(self, name: str, terms: _Terms, now: float) -> _Purse:
        purse = self._purses.pop(name, None)
        if purse is None:
            purse = _Purse(terms.burst, now)
        self._purses[name] = purse
        share = 1 + len(purse.proven)
        grown = purse.left + max(0.0, now - purse.at) * share * terms.per_hour / _HOUR
        purse.left, purse.at = min(share * terms.burst, grown), now
        if len(self._purses) > _REMEMBERED:
            self._forget_one()
        return purse

    def _forget_one(self) -> None:
        oldest = next((name for name, purse in self._purses.items() if not purse.under_way), None)
        del self._purses[next(iter(self._purses)) if oldest is None else oldest]


def _destinations(place: str) -> Iterator[tuple[str, _Terms]]:
    """Yield what a place belongs to: its address, its machine, its network. Nothing for what is free."""
    try:
        address = parse_address(place)
    except LinkFailure:
        return  # An address of another transport, which leads to no machine.
    machine = address_of(f"{address.host}:0")
    if machine is None or machine.is_loopback or address.lan:
        return
    yield f"{machine} {address.port}", _ADDRESS
    yield str(machine), _MACHINE
    yield str(network_around(machine)), _NETWORK


def _owner_of(name: str) -> str:
    """Return the part of a host name that costs something to have: its last two labels."""
    return ".".join(name.lower().rstrip(".").split(".")[-2:])
