"""What tests of the use of relays share: names, events, and a relay as small as the protocol allows."""

from __future__ import annotations

from hashlib import sha256

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.event.event import Event, Tail, Unverified
from linnet.rooms.messages import RelayCursor, RelayOutcome, RelaySend, RelayTaken, Resync, ResyncPage
from linnet.rooms.relay_client.relay_client import LingerDue, RelayChoiceDue, RelayLinkDue, RotationDue
from linnet.rooms.relay_client.relay_session import BatchDue, LookDue, PageDue, Parcel
from linnet.trace.records import Kind, Record

ROOM = TopicId(sha256(b"a room").digest())
OURS = PeerId(b"us" * 16)
AUTHOR, DEVICE = AuthorId(b"a" * 32), DeviceId(b"d" * 8)
PURPOSE = f"relay {ROOM.hex()[:16]}"


def relay_id(number: int) -> PeerId:
    return PeerId(sha256(b"relay %d" % number).digest())


def contact(relay: PeerId) -> Contact:
    return Contact(relay, (f"tls://{relay[:2].hex()}:1",))


def event_id(number: int) -> EventId:
    return EventId(sha256(b"event %d" % number).digest())


def unit(number: int, size: int = 10) -> Unverified:
    return Unverified(ROOM, AUTHOR, DEVICE, number, None, (bytes(size),), bytes(64))


def parcel(number: int, size: int = 10) -> Parcel:
    tail = Tail(None, None, 1, None, "message", None, 0, None, b"")
    event = Event(event_id(number), ROOM, AUTHOR, DEVICE, number, None, tail)
    return Parcel(event, unit(number, size), None)


OF_ROOM = {"rotate": RotationDue, "retry": RelayChoiceDue}
OF_RELAY = {
    "link": RelayLinkDue,
    "look": LookDue,
    "linger": LingerDue,
    "answer": PageDue,
    "sent": BatchDue,
}


def tick(what: str, relay: PeerId | None = None) -> Timer:
    return OF_ROOM[what](ROOM) if relay is None else OF_RELAY[what](ROOM, relay)


def resync_record(relay: PeerId, note: str, events: int = 0, reason: Reason | None = None) -> Record:
    return Record(Kind.RESYNC, ROOM, events=events, peer=relay, reason=reason, note=note)


def page(
    request: int,
    units: tuple[Unverified, ...] = (),
    upto: RelayCursor | None = None,
    more: bool = False,
    control: tuple[EventId, ...] = (),
    reason: Reason | None = None,
    after: RelayCursor | None = None,
    oldest: RelayCursor | None = None,
) -> ResyncPage:
    return ResyncPage(ROOM, request, units, (), (), (), upto, more, oldest, control, reason, after)


def cursor(position: int, epoch: int = 0) -> RelayCursor:
    return RelayCursor(epoch.to_bytes(8, "big"), position)


class SmallRelay:
    """Keeps numbers in the order in which they come, and pushes to whoever follows."""

    def __init__(self, number: int) -> None:
        self.peer = relay_id(number)
        self.epoch = 0
        self.kept: list[int] = []
        self.follower: tuple[int, RelayCursor] | None = None

    def take(self, number: int) -> ResyncPage | None:
        """Keep an event; the page for a follower, if there is one."""
        if number in self.kept:
            return None
        self.kept.append(number)
        if self.follower is None:
            return None
        request, told = self.follower
        here = cursor(len(self.kept), self.epoch)
        self.follower = (request, here)
        return page(request, (unit(number),), here, after=told)

    def send(self, send: RelaySend) -> tuple[RelayTaken, list[ResyncPage]]:
        """Keep what somebody sent."""
        pages = [self.take(unit.seq) for unit in send.units if unit.seq is not None]
        outcomes = tuple(
            RelayOutcome(event_id(unit.seq), cursor(self.kept.index(unit.seq) + 1, self.epoch), None, ())
            for unit in send.units
            if unit.seq is not None
        )
        return RelayTaken(ROOM, send.request, outcomes, None), [one for one in pages if one is not None]

    def resync(self, asked: Resync, most: int) -> ResyncPage:
        """Answer a request with at most so many."""
        start = 0
        if asked.cursor is not None:
            if asked.cursor.epoch != cursor(0, self.epoch).epoch:
                return page(asked.request, reason=Reason.CURSOR_EXPIRED, oldest=cursor(0, self.epoch))
            start = asked.cursor.position
        end = min(len(self.kept), start + min(most, asked.limit))
        more = end < len(self.kept)
        here = cursor(end, self.epoch)
        self.follower = None if more or not asked.follow else (asked.request, here)
        return page(asked.request, tuple(map(unit, self.kept[start:end])), here, more)

    def restart(self, loses: bool) -> None:
        """Start anew, with what was kept or without."""
        self.follower = None
        if loses:
            self.epoch += 1
            self.kept = []
