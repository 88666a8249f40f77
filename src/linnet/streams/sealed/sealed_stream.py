"""One sealed stream at one node: opening what comes, sealing what goes, and the owner's list of readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.delivery.items import Unreadable
from linnet.event.event import MESSAGE, Event, Tail
from linnet.groups.ids import Device
from linnet.machine.outbox import Outbox
from linnet.streams.policy import Governance
from linnet.streams.sealed import owner, stream_keys
from linnet.streams.sealed.access_request import Request
from linnet.streams.sealed.message_format import (
    LONGEST,
    Chain,
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
    """The secrets of one stream and their use. In a stream that nobody sealed all stays as it is."""

    def __init__(self, topic: TopicId, context: Context, governance: Governance, out: Outbox) -> None:
        self._topic = topic
        self._context = context
        self._governance = governance
        self._me = Device(context.author, context.device)
        self.vault = Vault(topic, context.store.cells, context.config)
        self.following = Following(topic, governance.owner, context, self.vault, out)
        self._is_revoked_looked_for = True

    def open(self, event: Event) -> Event | Unreadable:
        """An event of the owner's as a reader is to see it."""
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
        """Why these cannot be published, if so."""
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
        """This device seals the stream from now on."""
        if not self.is_ours:
            self.vault.keep_owning(owner.start(self._me.device, self._context.entropy), now)

    def is_due(self, now: float) -> bool:
        """Whether an epoch must begin before the next message; readers whose device was revoked are out."""
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
        """A device was revoked: a reader's perhaps."""
        self._is_revoked_looked_for = True

    def turn(self, number: int, now: float) -> bytes:
        """Begin an epoch: the body of its announcement, which is to be our event of this number."""
        return self._kept(
            owner.turn(self.owned, self._topic, self._me, number, self._context.entropy, now), now
        )

    def allow(self, request: Request, number: int, from_now: bool, now: float) -> bytes:
        """Let a device in: the body of the announcement. `Refused` says why not."""
        if self.vault.was_granted(request.bundle.identity):
            raise Refused(Reason.KEY_SPENT, "this request was granted before; ask for a new one")
        if self._is_revoked(request.reader):
            raise Refused(Reason.CARD_REVOKED, "the person revoked this device")
        step = owner.allow(
            self.owned, self._topic, self._me, request, number, from_now, self._context.entropy, now
        )
        self.vault.note_granted(request.bundle.identity)
        return self._kept(step, now)

    def disallow(
        self, is_out: Callable[[Device], bool], number: int, now: float
    ) -> tuple[bytes, tuple[Admitted, ...]]:
        """Put readers out: the body of a new epoch's announcement, and who they were. `Refused` if none."""
        left, out = owner.without(self.owned, is_out)
        if not out:
            raise Refused(Reason.UNKNOWN, "no reader of this stream is meant by that")
        step = owner.turn(left, self._topic, self._me, number, self._context.entropy, now)
        return self._kept(step, now), out

    def seal(self, tails: Sequence[Tail], number: int, prev: EventId | None) -> Sequence[Tail]:
        """The next events of our chain with what they say encrypted; as they are if nobody seals here."""
        if not self.is_ours or tails[0].kind != MESSAGE:
            return tails
        present = self.owned.present
        if present is None or self.owned.last is None:
            raise Refused(Reason.KEY_MISSING, "no epoch has begun")
        chain = Chain(self._topic, *self._me, number, prev)
        return seal_tails(tails, chain, present, self.owned.last, self._context.entropy)

    @property
    def owned(self) -> Owning:
        """What the owner's device keeps; `Refused` elsewhere."""
        if self.vault.owning is None:
            raise Refused(Reason.NOT_ALLOWED, "this device does not seal that stream")
        return self.vault.owning

    def _is_revoked(self, device: Device) -> bool:
        return self._context.cards.revocation_of(*device) is not None

    def _kept(self, step: owner.Step, now: float) -> bytes:
        self.vault.keep_owning(step[0], now)
        return step[1]
