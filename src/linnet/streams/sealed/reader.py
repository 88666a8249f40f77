"""The reader's side of a sealed stream: its requests, the keys that were announced, and what waits for them.

What a reader keeps is a frozen value, on which pure functions work. A channel needs its messages in order,
so announcements are taken in one after the other; each names the one before. Two sorts need none before
them: one whose direct message is the first of a channel, and one that begins an epoch without us. What comes
too early waits for the one before it. What could not be read is told once it can be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.limits import MIB
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.gap_repair import GapRepair
from linnet.event.event import Event, Verified
from linnet.groups.ids import Device
from linnet.groups.prekeys import Prekeys, make_prekeys
from linnet.groups.primitives import KEY_BYTES, Hidden
from linnet.groups.two_party import EMPTY, Channel, receive
from linnet.machine.outbox import Outbox
from linnet.streams.sealed import stream_keys
from linnet.streams.sealed.access_request import request_text
from linnet.streams.sealed.announcement_search import Search
from linnet.streams.sealed.message_format import Clear
from linnet.streams.sealed.owner import KIND, Announcement, Sort, context_of, decode_announcement, party_of
from linnet.trace.records import Kind, Record

if TYPE_CHECKING:
    from linnet.streams.sealed.vault import Vault


ACCESSES: Final = 2
"""Requests of ours that may be answered: the newest, and the one by which we read until then."""
MAX_HELD = 4_096
"""Announcements that wait for the one before them; who lacks more than that asks to be let in anew."""
MAX_EVENTS = 4_096
MAX_BYTES = 16 * MIB
"""Of more, the oldest stay told as unreadable: they can be had again as history."""
MAY_PASS = frozenset({Reason.KEY_MISSING, Reason.NOT_A_MEMBER})
"""Why an event cannot be read now and perhaps can be later."""


class Access(Hidden, frozen=True):
    """One request of ours: its prekeys, and once it was answered the channel instead."""

    prekeys: Prekeys
    channel: Channel = EMPTY


class Reading(Hidden, frozen=True):
    """All that a device keeps of a sealed stream that it asked to read."""

    accesses: tuple[Access, ...]
    """Newest first."""
    sealer: DeviceId | None = None
    """The owner's device whose announcements we follow."""
    last: int | None = None
    """Number of the newest announcement that was taken in."""
    first: int | None = None
    """The epoch from which on we read; None: we were not let in yet."""
    barred: tuple[int, str] | None = None
    """An epoch from which on we have no key, and the reason."""
    keys: stream_keys.Epochs = ()


def ask(reading: Reading | None, entropy: Entropy, now: float) -> Reading:
    """A new request, with prekeys that nobody has seen; what we can read stays as it is until the answer."""
    access = Access(make_prekeys(entropy, now, 1, grace=0))
    if reading is None:
        return Reading((access,))
    # Of two requests the one that was answered is worth keeping, or else the newer one.
    kept = [known for known in reading.accesses if known.channel.received is not None] or reading.accesses
    return replace(reading, accesses=(access, *kept)[:ACCESSES])


def stands_alone(announcement: Announcement, me: Device) -> bool:
    """Whether an announcement can be taken in whatever came before it."""
    message = announcement.messages.get(me)
    return announcement.sort is Sort.EPOCH if message is None else message[0] == 0


def follows(reading: Reading, owner: DeviceId, announcement: Announcement) -> bool:
    """Whether it is the next one."""
    return owner == reading.sealer and announcement.before == reading.last


def take(
    reading: Reading,
    topic: TopicId,
    owner: Device,
    number: int,
    announcement: Announcement,
    me: Device,
    now: float,
) -> Reading:
    """What is known after an announcement of this number, which `follows` or `stands_alone`."""
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
    for place, access in enumerate(reading.accesses):
        try:
            channel, prekeys, key = receive(
                access.channel, access.prekeys, {}, party, announcement.identity, context, message, now
            )
        except RemoteError:
            continue
        if len(key) != KEY_BYTES:
            continue
        opened = Access(_spent(prekeys), channel)
        newer = reading.accesses[:place]
        return _opened(reading, (*newer, opened), owner.device, number, announcement.epoch, key, now)
    if not known and reading.sealer is not None:
        return reading
    barred = (announcement.epoch, Reason.DESYNCED.value)
    return replace(reading, sealer=owner.device, last=number, barred=barred)


def why_not(reading: Reading | None, device: DeviceId, clear: Clear) -> Reason:
    """Why a message cannot be opened whose epoch's key is not here."""
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


def _opened(
    reading: Reading,
    accesses: tuple[Access, ...],
    device: DeviceId,
    number: int,
    epoch: int,
    key: bytes,
    now: float,
) -> Reading:
    """With the key that a message brought; older accesses are of no use any more."""
    stays = device == reading.sealer and reading.barred is None
    first = reading.first if stays and reading.first is not None else epoch
    return replace(
        reading,
        accesses=accesses,
        sealer=device,
        last=number,
        first=min(first, epoch),
        barred=None,
        keys=stream_keys.begin(reading.keys, device, epoch, key, now),
    )


def _spent(prekeys: Prekeys) -> Prekeys:
    """Without the secrets that a first message needs: there is no other to come."""
    return replace(prekeys, signed=(), one_time=())


class Following:
    """What one reader's device knows of the announcements of one stream."""

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
        """The newest announcement that was named and is not here."""

    def ask(self, now: float) -> str:
        """A new request to read, as a line for the owner."""
        asking = ask(self._vault.reading, self._context.entropy, now)
        self._vault.keep_reading(asking, now)
        bundle = asking.accesses[0].prekeys.bundle
        return request_text(self._topic, self._context.card, bundle, self._context.key)

    def read(self, verified: Verified, now: float) -> bool:
        """Take in the announcements of a unit; whether something may be readable now that was not."""
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
        """Why a message does not open whose key is not here; if it may later, what it names is looked for."""
        reason = why_not(self._vault.reading, device, clear)
        if reason is Reason.KEY_MISSING:
            self._name(device, clear.announced)
        return reason

    def missing(self) -> tuple[DeviceId, int] | None:
        """The announcement to look for next: of which device, and its number."""
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
        return take(known, self._topic, owner, number, told, self._me, now)


def _next(known: Reading, device: DeviceId, held: dict[int, Announcement]) -> int | None:
    return next((number for number, told in held.items() if follows(known, device, told)), None)


class Locked:
    """What waits for one subscription, oldest first, within a bound."""

    __slots__ = ("_bytes", "_events")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event, reason: Reason) -> None:
        """Let an event wait, if there is hope for it."""
        if reason not in MAY_PASS:
            return
        self._events.append(event)
        self._bytes += len(event.body)
        while len(self._events) > MAX_EVENTS or self._bytes > MAX_BYTES:
            self._bytes -= len(self._events.popleft().body)

    def take(self) -> list[Event]:
        """All that waits; nothing does any more."""
        events, self._events = list(self._events), deque()
        self._bytes = 0
        return events


class Opening:
    """Takes in what announces keys, and looks for what is missing of it."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        gaps: GapRepair,
        following: Following,
        hand_unlocked: Callable[[], None],
        out: Outbox,
    ) -> None:
        """`hand_unlocked` hands subscriptions what they could not read before."""
        self._following = following
        self._search = Search(topic, context, gaps, following, out)
        self._hand_unlocked = hand_unlocked

    def read(self, units: Iterable[Verified], now: float) -> None:
        """Take in the announcements of units, before anything of them is handed over."""
        is_news = False
        for verified in units:
            is_news = self._following.read(verified, now) or is_news
        if is_news:
            self._hand_unlocked()

    def look_for_keys(self, now: float) -> None:
        """Look for the keys of what could not be read, after something was handed over."""
        self._search.look(now)

    def set_storage(self, nodes: dict[PeerId, Contact]) -> None:
        """These nodes keep the stream."""
        self._search.set_storage(nodes)

    def ask_again(self, now: float) -> None:
        """Whoever was asked for a key took too long."""
        self._search.ask_again(now)

    def stop(self) -> None:
        """Nobody wants to read any more."""
        self._search.stop()
