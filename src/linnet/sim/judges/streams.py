"""The judge of a stream: which readers must have which events, worked out from acknowledged publications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from msgspec import Struct

from linnet.core.ids import DeviceId, EventId
from linnet.sim.judges.verdict import Complaint, Rule

EARLIER = 10.0
"""Seconds before a subscription beyond which an event counts as old."""


class Publication(Struct, frozen=True):
    """A published event that was acknowledged to the publisher."""

    id: EventId
    device: DeviceId
    seq: int
    publisher: str
    asked: float
    acked: float
    is_owed: bool
    """Whether its publisher lives, so that the event cannot be lost with the only node that has it."""
    is_forbidden: bool = False
    """Whether the device had been revoked long before."""
    was_wrong: bool = False
    """Whether the publisher's clock was wrong."""
    spread: float = inf
    """When an application elsewhere had it first. An event that its publisher alone has is new to a
    newcomer."""


class Receipt(Struct, frozen=True):
    """One event that a reader was handed."""

    id: EventId
    device: DeviceId
    seq: int


class Life(Struct, frozen=True):
    """A subscription between two starts of its node."""

    handed: tuple[Receipt, ...]
    missed: tuple[tuple[DeviceId, int, int], ...]
    """Ranges that were reported to it as missed."""
    consumed: frozenset[EventId] = frozenset()
    """Events that it acknowledged to have handled before its node ended."""


class Reader(Struct, frozen=True):
    """One subscription, over all lives of its node if it is durable."""

    name: str
    from_now: bool
    asked: float
    made: float
    """When the subscription was acknowledged."""
    lives: tuple[Life, ...]
    is_running: bool
    """Whether it is on in the end, and if it is not durable, without a break."""
    was_wrong: bool = False
    """Whether clocks were wrong, so that nobody can tell which events are older."""


def judge_stream(publications: Iterable[Publication], readers: Iterable[Reader]) -> list[Complaint]:
    """Return all broken promises."""
    published = {each.id: each for each in publications}
    return [complaint for reader in readers for complaint in _judge_reader(published, reader)]


def _judge_reader(published: dict[EventId, Publication], reader: Reader) -> Iterator[Complaint]:
    handed_before: dict[EventId, None] = {}
    consumed: dict[EventId, None] = {}
    for life in reader.lives:
        seen: dict[EventId, None] = {}
        last: dict[DeviceId, int] = {}
        for receipt in life.handed:
            event = published.get(receipt.id)
            what = f"{reader.name} was handed number {receipt.seq} of {receipt.device.hex()[:6]}"
            if event is None or (event.device, event.seq) != (receipt.device, receipt.seq):
                yield Complaint(Rule.INVENTED, f"{what}, which nobody published")
                continue
            if receipt.id in seen or receipt.id in consumed:
                yield Complaint(Rule.DOUBLED, f"{what} of {event.publisher} twice")
            elif receipt.seq < last.get(receipt.device, -1):
                yield Complaint(Rule.REORDERED, f"{what} of {event.publisher} after {last[receipt.device]}")
            if event.is_forbidden:
                yield Complaint(Rule.FORBIDDEN, f"{what}, whose device was revoked")
            is_old = event.spread < reader.asked - EARLIER and not event.was_wrong and not reader.was_wrong
            if reader.from_now and is_old:
                ago = reader.asked - event.acked
                yield Complaint(Rule.OLD, f"{what} of {event.publisher}, acknowledged {ago:.0f} s before it")
            last[receipt.device] = max(receipt.seq, last.get(receipt.device, -1))
            seen[receipt.id] = None
        handed_before.update(seen)
        consumed.update(dict.fromkeys(life.consumed))
    if reader.is_running:
        yield from _judge_absences(published.values(), reader, handed_before)


def _judge_absences(
    published: Iterable[Publication], reader: Reader, handed: dict[EventId, None]
) -> Iterator[Complaint]:
    missed = [each for life in reader.lives for each in life.missed]
    for event in published:
        if not event.is_owed or event.asked <= reader.made or event.id in handed:
            continue
        if not any(device == event.device and first <= event.seq <= last for device, first, last in missed):
            later = event.asked - reader.made
            text = f"{reader.name} lacks number {event.seq} of {event.publisher}"
            yield Complaint(Rule.MISSING, f"{text}, published {later:.0f} s after it")
