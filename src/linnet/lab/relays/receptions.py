"""Every reception of a small chat, by the definitions: what the protocol's runs are compared with.

Members and events are looked at one by one; this is for samples of a few hundred messages. The models
over whole chats (`deliveries`, `returns`, `pushes`) give no single receptions, and are tested against this.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linnet.lab.relays.chat_arrays import ChatArrays
from linnet.lab.relays.presence import Presence


class Reception(NamedTuple):
    """An event, by its place in the chat, reaches a member at a time."""

    event: int
    receiver: int
    time: int


class Synchronised(NamedTuple):
    """First receptions where members who are online together know the same."""

    direct: list[Reception]
    """At the instant at which the sender itself would have delivered."""
    backfilled: list[Reception]
    """Earlier than that, or where sender and receiver never met: brought by others."""


Periods = list[tuple[int, int]]


def periods_of(presence: Presence, members: int) -> list[Periods]:
    """The online periods of each member, as pairs of start and end."""
    periods: list[Periods] = [[] for _ in range(members)]
    for member, start, end in zip(*(column.tolist() for column in presence), strict=True):
        periods[member].append((start, end))
    return periods


def relayed_receptions(chat: ChatArrays, presence: Presence) -> list[Reception]:
    """With relays: each event at each other member's first instant online, by event and receiver."""
    periods = periods_of(presence, chat.members)
    received = []
    for event, sender, time in _events(chat):
        for receiver in range(chat.members):
            reached = _first_online(periods[receiver], time)
            if receiver != sender and reached is not None:
                received.append(Reception(event, receiver, reached))
    return received


def direct_pushes(chat: ChatArrays, presence: Presence) -> list[Reception]:
    """Without relays: each event at the first instant at which sender and receiver are both online."""
    periods = periods_of(presence, chat.members)
    pushed = []
    for event, sender, time in _events(chat):
        for receiver in range(chat.members):
            met = _first_together(periods[sender], periods[receiver], time)
            if receiver != sender and met is not None:
                pushed.append(Reception(event, receiver, met))
    return pushed


def synchronised_receptions(chat: ChatArrays, presence: Presence) -> Synchronised:
    """Without relays, but who comes online and who is there tell each other all that they know."""
    pushed = {(push.event, push.receiver): push.time for push in direct_pushes(chat, presence)}
    direct: list[Reception] = []
    backfilled: list[Reception] = []
    for reception in sorted(_told(chat, presence)):
        known = pushed.get((reception.event, reception.receiver)) == reception.time
        (direct if known else backfilled).append(reception)
    return Synchronised(direct, backfilled)


def instants(chat: ChatArrays, presence: Presence) -> Iterator[tuple[int, list[int], list[int], list[int]]]:
    """Each time at which something happens: who goes offline, who comes online, and which events are sent."""
    moments: dict[int, tuple[list[int], list[int], list[int]]] = {}
    for member, start, end in zip(*(column.tolist() for column in presence), strict=True):
        moments.setdefault(end, ([], [], []))[0].append(member)
        moments.setdefault(start, ([], [], []))[1].append(member)
    for event, _, time in _events(chat):
        moments.setdefault(time, ([], [], []))[2].append(event)
    for time in sorted(moments):
        yield time, *moments[time]


def bits(mask: int) -> Iterator[int]:
    """The places of the ones of a number, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _told(chat: ChatArrays, presence: Presence) -> Iterator[Reception]:
    """First receptions by a sweep over time; what a member knows is a set of bits."""
    known, online = [0] * chat.members, dict.fromkeys(range(0))
    for time, leaving, coming, sent in instants(chat, presence):
        for member in leaving:
            del online[member]
        online |= dict.fromkeys(coming)
        for event in sent:
            known[int(chat.user[event])] |= 1 << event
        together = 0
        for member in online:
            together |= known[member]
        for member in online:
            yield from (Reception(event, member, time) for event in bits(together & ~known[member]))
            known[member] = together


def _events(chat: ChatArrays) -> Iterator[tuple[int, int, int]]:
    return zip(range(len(chat.ts)), chat.user.tolist(), chat.ts.tolist(), strict=True)


def _first_online(periods: Sequence[tuple[int, int]], time: int) -> int | None:
    """The first instant at or after a time in any of the periods."""
    place = bisect_right(periods, time, key=lambda period: period[1])
    return max(time, periods[place][0]) if place < len(periods) else None


def _first_together(
    one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]], time: int
) -> int | None:
    """The first instant at or after a time that lies in periods of both."""
    while (mine := _first_online(one, time)) is not None:
        theirs = _first_online(other, mine)
        if theirs is None or theirs == mine:
            return theirs
        time = theirs
    return None
