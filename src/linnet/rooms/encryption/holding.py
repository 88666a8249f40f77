"""The group of one encrypted room as this device has it: its state, who holds keys, and who should.

The room's resolved state says who *should* hold keys, the group who *does*; `guarding` makes the second
follow the first. Every change of the group's state is written in the same commit as the event that
caused it (docs/adr/0014-encrypted-groups.md).
"""

from __future__ import annotations

from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.groups import agreement
from linnet.groups.bodies import Keys, decode_body
from linnet.groups.ids import Device, MemberId
from linnet.groups.prekeys import Bundle
from linnet.groups.state import GroupState, decode_parts, encode_parts
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import Membership
from linnet.rooms.encryption.keyring import Keyring
from linnet.rooms.room_store import RoomMemory
from linnet.trace.records import Kind, Record


class Holding:
    """The group of one room, and the room's word on it."""

    def __init__(
        self, room: TopicId, context: Context, control: ControlDag, memory: RoomMemory, out: Outbox
    ) -> None:
        self._room = room
        self._out = out
        self._context = context
        self._control = control
        self._memory = memory
        self.ours = Device(context.author, context.device)
        self.keyring = Keyring(room, context.store.cells)
        parts = self.keyring.parts
        self._state: GroupState | None = decode_parts(parts) if parts else None
        self._bundles: dict[EventId, Bundle] = {}
        self.version = 0
        """Grows whenever something has changed that others may have to act upon."""

    # Who should hold keys, and who does.

    def may_hold(self, device: Device) -> bool:
        """Whether the room's state has this device among its members."""
        view = self._control.view()
        joined = view.membership(device.author) is Membership.JOIN
        return joined and not view.is_relay_person(device.author) and not view.is_revoked(*device)

    def bundle(self, device: Device) -> Bundle | None:
        """The prekeys that a device told last (`linnet.groups.agreement.Directory`)."""
        event = self.keyring.bundles.get(device)
        if event is None:
            return None
        if event not in self._bundles:
            known = self._memory.event(event)
            body = None if known is None else decode_body(known.body)
            if not isinstance(body, Keys):
                return None
            self._bundles[event] = body.bundle
        return self._bundles[event]

    @property
    def known_state(self) -> GroupState | None:
        """The state as it is, for those who only look; None before its first use."""
        return self._state

    @property
    def is_member(self) -> bool:
        """Whether this device is in the group."""
        return self._state is not None and agreement.is_member(self._state)

    @property
    def can_speak(self) -> bool:
        """Whether others can follow what this device seals."""
        return self._state is not None and self.is_member and not agreement.is_desynced(self._state)

    def members(self) -> dict[MemberId, Device]:
        """Who holds keys, as far as this device knows; nobody, if it is not in the group."""
        return agreement.members(self._state) if self._state is not None and self.is_member else {}

    def surplus(self) -> list[MemberId]:
        """Members that hold keys and should not: gone from the room, revoked, or about to come anew."""
        return [member for member, device in self.members().items() if self._is_surplus(member, device)]

    def _is_surplus(self, member: MemberId, device: Device) -> bool:
        if self._state is None or member == self._state.me:
            return False
        if device == self.ours or not self.may_hold(device) or member in self._state.leaving:
            return True  # A second time in the group ourselves: added by two who did not know of each other.
        told, known = self.bundle(device), self._state.history.member(member)
        return told is not None and known is not None and told.identity != known.identity

    def missing(self) -> list[Device]:
        """Devices that should hold keys and do not, and have told prekeys to reach them by."""
        held = set(self.members().values())
        return [
            device
            for device in self.keyring.bundles
            if device not in held and device != self.ours and self.may_hold(device) and self._is_fresh(device)
        ]

    def _is_fresh(self, device: Device) -> bool:
        told = self.bundle(device)
        return told is not None and not self.keyring.is_used(told.identity)

    # The state of the group.

    def state(self, now: float) -> GroupState:
        """The state, from the first use on."""
        if self._state is None:
            self.keep(agreement.begin(self._room, self.ours, self._context.entropy, now))
        assert self._state is not None  # noqa: S101 # just set
        return self._state

    def keep(self, state: GroupState) -> None:
        """A state that others may have to act upon."""
        self.keep_keys(state)
        self.version += 1

    def keep_keys(self, state: GroupState) -> None:
        """A state that differs in the keys of messages alone."""
        self._state = state
        self.keyring.keep_state(encode_parts(state))

    def forget(self, now: float) -> None:
        """We are of the room no longer: all keys are gone, and who lets us in again does so by new ones."""
        self.keep(agreement.begin(self._room, self.ours, self._context.entropy, now))

    def record_refusal(self, event: Event, reason: Reason, note: str) -> None:
        """Record that an event was not followed, or could not be opened."""
        whose = (self._room, event.id, event.device, event.seq)
        self._out.record(Record(Kind.REJECTED, *whose, reason=reason, note=note[:100]))
