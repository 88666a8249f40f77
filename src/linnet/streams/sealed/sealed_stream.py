"""One sealed stream at one node: opens received events, seals our own, and manages the owner's readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.items import Unreadable
from linnet.event.event import MESSAGE, Event, Spot, Tail
from linnet.groups.labels import Device
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.streams.ingest import Governance
from linnet.streams.sealed import owner, stream_keys
from linnet.streams.sealed.access_request import Request
from linnet.streams.sealed.message_format import (
    LONGEST,
    Clear,
    is_sealed,
    open_event,
    read_clear,
    seal_tails,
)
from linnet.streams.sealed.owner import Admitted, Owning
from linnet.streams.sealed.reader import Following
from linnet.streams.sealed.vault import Vault


class Sealed:
    """Opens and seals the events of one stream. Events of a stream that is not sealed stay as they are."""

    def __init__(self, topic: TopicId, context: Context, governance: Governance, out: Outbox) -> None:
        self._topic = topic
        self._context = context
        self._governance = governance
        self._me = Device(context.author, context.device)
        self.vault = Vault(topic, context.store.cells, context.config)
        self.following = Following(topic, governance.owner, context, self.vault, out)
        self._is_revoked_looked_for = True

    def open(self, event: Event) -> Event | Unreadable:
        """Return an event of the owner's opened, or as `Unreadable` with the reason."""
        if not is_sealed(event):
            return event
        try:
            clear = read_clear(event.tail.clear or b"")
            key = self._key(event.device, clear)
            if key is not None:
                return open_event(event, clear, key)
            reason = self._why_not(event.device, clear)
        except RemoteError as error:
            reason = error.reason
        return Unreadable(replace(event, tail=replace(event.tail, body=b"")), reason)

    def _key(self, device: DeviceId, clear: Clear) -> stream_keys.EpochKey | None:
        for known in (self.vault.owning, self.vault.reading):
            key = None if known is None else stream_keys.find(known.keys, device, clear.epoch)
            if key is not None:
                return key
        return None

    def _why_not(self, device: DeviceId, clear: Clear) -> Reason:
        if self.vault.owning is not None and device == self.vault.owning.device:
            return Reason.KEY_SPENT
        return self.following.why_not(device, clear)

    # The owner's device.

    @property
    def is_ours(self) -> bool:
        """Whether this device seals the stream."""
        return self.vault.owning is not None

    def objection(self, tails: Sequence[Tail]) -> Declined | None:
        """Return why these events cannot be published, or None if they can."""
        sealer = self._governance.policy.sealer
        if not self.is_ours:
            if sealer is None or self._governance.owner != self._context.author:
                return None
            detail = f"your device {sealer.hex()} seals this stream, and only what it says can be sealed"
            return Declined(Reason.NOT_ALLOWED, detail)
        longest = max(len(tail.body) for tail in tails)
        if longest > LONGEST:
            detail = f"a body of {longest} bytes, at most {LONGEST} are allowed in a sealed stream"
            return Declined(Reason.TOO_LARGE, detail)
        return None

    def start(self, now: float) -> None:
        """Seal the stream at this device from now on."""
        if not self.is_ours:
            self.vault.keep_owning(owner.start(self._me.device, self._context.entropy), now)

    def is_due(self, now: float) -> bool:
        """Return whether an epoch must begin before the next message; drop readers that were revoked."""
        if not self.is_ours:
            return False
        if self._is_revoked_looked_for:
            self._is_revoked_looked_for = False
            left, out = owner.without(self.owned, self._is_revoked)
            if out:
                self.vault.keep_owning(left, now)
                return True
        return owner.is_due(self.owned, self._context.config.epoch_seconds, now)

    def note_revocation(self) -> None:
        """Note a revocation: check before the next message whether it removes a reader."""
        self._is_revoked_looked_for = True

    def turn(self, number: int, now: float) -> bytes:
        """Begin an epoch; return its announcement's body, to be published as our event of this number."""
        return self._kept(owner.turn(self.owned, self._place(number), self._context.entropy, now), now)

    def allow(self, request: Request, number: int, from_now: bool, now: float) -> bytes:
        """Let a device in; return the body of the announcement. Raises `Refused` if it cannot be let in."""
        if self.vault.was_granted(request.bundle.identity):
            raise Refused(Reason.KEY_SPENT, "this request was granted before; ask for a new one")
        if self._is_revoked(request.reader):
            raise Refused(Reason.CARD_REVOKED, "the person revoked this device")
        entropy = self._context.entropy
        step = owner.allow(self.owned, self._place(number), request, from_now, entropy, now)
        self.vault.note_granted(request.bundle.identity)
        return self._kept(step, now)

    def disallow(
        self, is_out: Callable[[Device], bool], number: int, now: float
    ) -> tuple[bytes, tuple[Admitted, ...]]:
        """Remove readers; return a new epoch's announcement and those removed; raises `Refused` if none."""
        left, out = owner.without(self.owned, is_out)
        if not out:
            raise Refused(Reason.UNKNOWN, "no reader of this stream is meant by that")
        step = owner.turn(left, self._place(number), self._context.entropy, now)
        return self._kept(step, now), out

    def seal(self, tails: Sequence[Tail], number: int, prev: EventId | None) -> Sequence[Tail]:
        """Encrypt the bodies of our next events; return them unchanged if this device does not seal."""
        if not self.is_ours or tails[0].kind != MESSAGE:
            return tails
        present = self.owned.present
        if present is None or self.owned.last is None:
            raise Refused(Reason.KEY_MISSING, "no epoch has begun")
        spot = Spot(self._topic, *self._me, number, prev)
        return seal_tails(tails, spot, present, self.owned.last, self._context.entropy)

    @property
    def owned(self) -> Owning:
        """The state of the owner's device; raises `Refused` on other devices."""
        if self.vault.owning is None:
            raise Refused(Reason.NOT_ALLOWED, "this device does not seal that stream")
        return self.vault.owning

    def _is_revoked(self, device: Device) -> bool:
        return self._context.cards.revocation_of(*device) is not None

    def _place(self, number: int) -> owner.Place:
        return owner.Place(self._topic, self._me, number)

    def _kept(self, step: owner.Step, now: float) -> bytes:
        self.vault.keep_owning(step[0], now)
        return step[1]
