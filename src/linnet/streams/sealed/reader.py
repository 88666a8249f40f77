"""The reader's side of a sealed stream: its requests, the announced keys, and the events that wait for them.

A reader's state is a frozen value, on which pure functions work. A channel needs its messages in order, so
announcements are taken in one after the other; each names the one before. Two sorts need no earlier one: an
announcement whose direct message is the first of a channel, and one that begins an epoch without us. One that
arrives too early waits for the one before it. Events that were unreadable are handed over once they open.

A reader that subscribes today has not received the announcement of today's key. Messages name its number, so
the reader asks for it, first storage nodes and then neighbours that hold the chain. An announcement that
nobody has is given up with a record, and looked for again when a later message names it, after a pause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.limits import MIB
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.context import Context
from linnet.delivery.gap_repair import GapRepair
from linnet.delivery.messages import Resend
from linnet.event.event import Event, Verified
from linnet.groups.labels import Device
from linnet.groups.prekeys import Prekeys, make_prekeys
from linnet.groups.primitives import KEY_BYTES
from linnet.groups.two_party import Incoming, receive
from linnet.machine.outbox import Outbox
from linnet.streams.sealed import stream_keys
from linnet.streams.sealed.access_request import request_text
from linnet.streams.sealed.message_format import Clear
from linnet.streams.sealed.owner import (
    KIND,
    Announcement,
    Place,
    Sort,
    context_of,
    decode_announcement,
    party_of,
)
from linnet.streams.sealed.vault import Access, Reading, Vault
from linnet.trace.records import Kind, Record

ACCESSES: Final = 2
"""Our requests that may still be answered: the newest, and the one by which we read until then."""
MAX_HELD = 4_096
"""Announcements that wait for earlier ones; a reader that lacks more must ask for access anew."""
MAX_EVENTS = 4_096
MAX_BYTES = 16 * MIB
"""Bound on waiting events. Beyond it, the oldest stay unreadable; they can be fetched as history."""
MAY_PASS = frozenset({Reason.KEY_MISSING, Reason.NOT_A_MEMBER})
"""Reasons for which an event that is unreadable now may become readable."""


def ask(reading: Reading | None, entropy: Entropy, now: float) -> Reading:
    """Add a new request with fresh prekeys; what we can read stays readable until it is answered."""
    access = Access(make_prekeys(entropy, now, 1, grace=0))
    if reading is None:
        return Reading((access,))
    # Of two older requests, keep the answered one, or else the newer one.
    kept = [known for known in reading.accesses if known.channel.received is not None] or reading.accesses
    return replace(reading, accesses=(access, *kept)[:ACCESSES])


def stands_alone(announcement: Announcement, me: Device) -> bool:
    """Return whether an announcement can be taken in without the one before it."""
    message = announcement.messages.get(me)
    return announcement.sort is Sort.EPOCH if message is None else message[0] == 0


def follows(reading: Reading, owner: DeviceId, announcement: Announcement) -> bool:
    """Return whether an announcement is the next one for this reader."""
    return owner == reading.sealer and announcement.before == reading.last


def take(reading: Reading, place: Place, announcement: Announcement, me: Device, now: float) -> Reading:
    """Return the state after an announcement that `follows` or `stands_alone`."""
    topic, owner, number = place
    message = announcement.messages.get(me)
    known = owner.device == reading.sealer
    if message is None:
        if announcement.sort is not Sort.EPOCH:
            return replace(reading, last=number) if known else reading
        if not known and reading.sealer is not None:
            return reading
        barred = (announcement.epoch, Reason.NOT_A_MEMBER.value)
        return replace(reading, sealer=owner.device, last=number, barred=barred)
    context = context_of(topic, owner, me, announcement.epoch)
    party = party_of(topic, owner)
    came = Incoming(party, announcement.identity, context, message)
    for index, access in enumerate(reading.accesses):
        try:
            channel, prekeys, key = receive(access.channel, access.prekeys, {}, came, now)
        except RemoteError:
            continue
        if len(key) != KEY_BYTES:
            continue
        opened = Access(_spent(prekeys), channel)
        kept = replace(reading, accesses=(*reading.accesses[:index], opened))
        return _opened(kept, place, announcement.epoch, key, now)
    if not known and reading.sealer is not None:
        return reading
    barred = (announcement.epoch, Reason.DESYNCED.value)
    return replace(reading, sealer=owner.device, last=number, barred=barred)


def why_not(reading: Reading | None, device: DeviceId, clear: Clear) -> Reason:
    """Return why a message cannot be opened whose epoch key we do not have."""
    if reading is None:
        return Reason.NOT_A_MEMBER
    known = device == reading.sealer
    if known and reading.first is not None and clear.epoch < reading.first:
        return Reason.BEFORE_JOINING
    if not known or reading.last is None or clear.announced > reading.last:
        return Reason.KEY_MISSING
    if reading.barred is not None and clear.epoch >= reading.barred[0]:
        return Reason(reading.barred[1])
    return Reason.KEY_SPENT if reading.first is not None else Reason.NOT_A_MEMBER


def _opened(reading: Reading, place: Place, epoch: int, key: bytes, now: float) -> Reading:
    """Add the key that an announcement brought."""
    device = place.owner.device
    stays = device == reading.sealer and reading.barred is None
    first = reading.first if stays and reading.first is not None else epoch
    return replace(
        reading,
        sealer=device,
        last=place.number,
        first=min(first, epoch),
        barred=None,
        keys=stream_keys.begin(reading.keys, device, epoch, key, now),
    )


def _spent(prekeys: Prekeys) -> Prekeys:
    """Drop the secrets that only a first message needs: no other first message will come."""
    return replace(prekeys, signed=(), one_time=())


class Following:
    """A reading device's knowledge of the announcements of one stream."""

    def __init__(
        self, topic: TopicId, owner: AuthorId | None, context: Context, vault: Vault, out: Outbox
    ) -> None:
        self._topic = topic
        self.owner = owner
        self._context = context
        self._vault = vault
        self._out = out
        self._me = Device(context.author, context.device)
        self._held: dict[DeviceId, dict[int, Announcement]] = {}
        self._named: tuple[DeviceId, int] | None = None
        """The newest announcement that messages name and that is not here."""

    def ask(self, now: float) -> str:
        """Make a new request to read, as a line for the owner."""
        asking = ask(self._vault.reading, self._context.entropy, now)
        self._vault.keep_reading(asking, now)
        bundle = asking.accesses[0].prekeys.bundle
        return request_text(self._topic, self._context.card, bundle, self._context.key)

    def read(self, verified: Verified, now: float) -> bool:
        """Take in the announcements of a unit; return whether more events may be readable now."""
        news = False
        if self._vault.reading is None or verified.unit.author != self.owner:
            return news
        for event in verified.events:
            if event.kind != KIND:
                continue
            try:
                news = self._take(event, decode_announcement(event.body), now) or news
            except RemoteError as error:
                place = (self._topic, event.id, event.device, event.seq)
                self._out.record(Record(Kind.REJECTED, *place, reason=error.reason, note="announcement"))
        return news

    def why_not(self, device: DeviceId, clear: Clear) -> Reason:
        """Return why a message does not open for want of a key; look for its announcement if useful."""
        reason = why_not(self._vault.reading, device, clear)
        if reason is Reason.KEY_MISSING:
            self._name(device, clear.announced)
        return reason

    def missing(self) -> tuple[DeviceId, int] | None:
        """Return the device and number of the announcement to look for next."""
        known = self._vault.reading
        if self._named is None or known is None:
            return None
        device, number = self._named
        held = self._held.get(device, {})
        while number in held:
            before = held[number].before
            if before is None or before >= number:
                return None
            number = before
        is_news = device != known.sealer or known.last is None or number > known.last
        return (device, number) if is_news else None

    def _name(self, device: DeviceId, number: int) -> None:
        if self._named is None or self._named[0] != device or self._named[1] < number:
            self._named = (device, number)

    def _take(self, event: Event, told: Announcement, now: float) -> bool:
        known = self._vault.reading
        device, number = event.device, event.seq or 0
        if known is None or (device == known.sealer and known.last is not None and number <= known.last):
            return False
        held = self._held.setdefault(device, {})
        if not (stands_alone(told, self._me) or follows(known, device, told)):
            if len(held) < MAX_HELD:
                held[number] = told
                self._name(device, number)
            return False
        after = self._taken(known, device, number, told, now)
        while (next_one := _next(after, device, held)) is not None:
            after = self._taken(after, device, next_one, held.pop(next_one), now)
        if after is known:
            return False
        self._held = {device: {at: one for at, one in held.items() if at > (after.last or 0)}}
        self._vault.keep_reading(after, now)
        return True

    def _taken(
        self, known: Reading, device: DeviceId, number: int, told: Announcement, now: float
    ) -> Reading:
        owner = Device(self.owner or self._me.author, device)
        return take(known, Place(self._topic, owner, number), told, self._me, now)


def _next(known: Reading, device: DeviceId, held: dict[int, Announcement]) -> int | None:
    return next((number for number, told in held.items() if follows(known, device, told)), None)


class Locked:
    """The unreadable events that wait for one subscription, oldest first and bounded."""

    __slots__ = ("_bytes", "_events")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event, reason: Reason) -> None:
        """Let an event wait, if it may become readable."""
        if reason not in MAY_PASS:
            return
        self._events.append(event)
        self._bytes += len(event.body)
        while len(self._events) > MAX_EVENTS or self._bytes > MAX_BYTES:
            self._bytes -= len(self._events.popleft().body)

    def take(self) -> list[Event]:
        """Take all waiting events."""
        events, self._events = list(self._events), deque()
        self._bytes = 0
        return events


SEARCH_PAUSE = 30.0
"""Seconds before an announcement that nobody had is looked for again."""


class KeySearchDue(TopicTimer, frozen=True, gc=False):
    """The time is up in which a source could answer with the announcement of a key."""


class Opening:
    """Takes in the key announcements of one stream, and asks other nodes for missing ones.

    It looks for one announcement at a time, since each names the one before.
    """

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        gaps: GapRepair,
        following: Following,
        hand_unlocked: Callable[[], None],
        out: Outbox,
    ) -> None:
        """`hand_unlocked` hands subscriptions the events that have become readable."""
        self._topic = topic
        self._owner = following.owner
        self._context = context
        self._gaps = gaps
        self._following = following
        self._hand_unlocked = hand_unlocked
        self._out = out
        self._storage: dict[PeerId, Contact] = {}
        self._held: PeerId | None = None
        self._sought: tuple[DeviceId, int] | None = None
        self._tries = 0
        self._given_up_at: float | None = None
        self._timer = KeySearchDue(topic)
        self._purpose = f"keys {topic.hex()[:16]}"

    def set_storage(self, nodes: dict[PeerId, Contact]) -> None:
        """Replace the known storage nodes of the stream."""
        self._storage = nodes

    def read(self, units: Iterable[Verified], now: float) -> None:
        """Take in the announcements of units, before any of their events is handed over."""
        is_news = False
        for verified in units:
            is_news = self._following.read(verified, now) or is_news
        if is_news:
            self._hand_unlocked()

    def look_for_keys(self, now: float) -> None:
        """Look for the missing announcement after a unit was handed over, unless that is under way."""
        missing = self._following.missing()
        if missing == self._sought and (self._given_up_at is None or now < self._given_up_at + SEARCH_PAUSE):
            return
        if missing is None:
            self.stop()
            return
        self._sought, self._tries, self._given_up_at = missing, 0, None
        self._ask(now)

    def ask_again(self, now: float) -> None:
        """Ask the next source: the last one did not have it, or did not answer."""
        if self._sought is not None and self._given_up_at is None:
            self._ask(now)

    def stop(self) -> None:
        """Stop looking for announcements."""
        if self._sought is not None:
            self._sought = self._given_up_at = None
            self._out.cancel_timer(self._timer)
            self._release_storage()

    def _ask(self, now: float) -> None:
        if self._sought is None or self._owner is None:
            return
        device, number = self._sought
        config = self._context.config
        sources = self._gaps.sources_for(self._owner + device)
        if self._tries >= config.gap_tries + len(sources):
            self._given_up_at = now
            place = (self._topic, None, device, number)
            self._out.record(Record(Kind.DROPPED, *place, reason=Reason.KEY_MISSING, note="announcement"))
            self._release_storage()
            return
        self._tries += 1
        if not sources:
            self._hold_storage()
            self._out.set_timer(config.gap_backoff, self._timer)
            return
        peer = sources[(self._tries - 1) % len(sources)]
        self._out.send(peer, Resend(self._topic, self._owner, device, number, number))
        self._out.set_timer(config.gap_timeout, self._timer)

    def _hold_storage(self) -> None:
        """Get a link to a storage node, since no source that may have it is linked."""
        if self._held is None and self._storage:
            contact = next(iter(self._storage.values()))
            self._held = contact.peer
            self._out.hold(contact.peer, contact.hints, self._purpose)

    def _release_storage(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._out.release(held, self._purpose)
