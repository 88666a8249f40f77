"""A reader that follows the owner's announcements: what comes too early waits for the one before it."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event, Verified
from linnet.groups.ids import Device
from linnet.machine.outbox import Outbox
from linnet.streams.sealed import reading
from linnet.streams.sealed.access_request import request_text
from linnet.streams.sealed.message_format import Clear
from linnet.streams.sealed.owner import KIND, Announcement, decode_announcement
from linnet.streams.sealed.reading import Reading
from linnet.streams.sealed.vault import Vault
from linnet.trace.records import Kind, Record

MAX_HELD = 4_096
"""Announcements that wait for the one before them; who lacks more than that asks to be let in anew."""


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
        asking = reading.ask(self._vault.reading, self._context.entropy, now)
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
        reason = reading.why_not(self._vault.reading, device, clear)
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
        if not (reading.stands_alone(told, self._me) or reading.follows(known, device, told)):
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
        return reading.take(known, self._topic, owner, number, told, self._me, now)


def _next(known: Reading, device: DeviceId, held: dict[int, Announcement]) -> int | None:
    return next((number for number, told in held.items() if reading.follows(known, device, told)), None)
