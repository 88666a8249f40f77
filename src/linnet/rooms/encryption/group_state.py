"""The group of one encrypted room as this device knows it, and the cells that store it.

The room's resolved state says which devices *should* hold keys, the group which *do*; `group_maintenance`
makes the second follow the first. Every change of the group's state is written in the same commit as the
event that caused it (docs/adr/0014-encrypted-groups.md). Keys are deleted as soon as they are used, so the
text of a message, or the reason why it could not be opened, is stored when it is opened, in the same commit
as the state without its key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from linnet.core.errors import CellsDamaged
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.groups import agreement
from linnet.groups.bodies import Keys, decode_body
from linnet.groups.labels import Device, MemberId
from linnet.groups.prekeys import Bundle
from linnet.groups.state import GroupState, decode_parts, encode_parts
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.room_store import LateEvents, RoomMemory
from linnet.trace.records import Kind, Record


class HeldGroup:
    """The group of one room, and the devices that should be in it by the room's state."""

    def __init__(self, context: Context, control: ControlDag, memory: RoomMemory, out: Outbox) -> None:
        room = control.room
        self._out = out
        self._context = context
        self._control = control
        self._memory = memory
        self.ours = Device(context.author, context.device)
        self.keyring = Keyring(room, context.store.cells)
        self.texts = Texts(room, context.store.cells)
        parts = self.keyring.parts
        self.known_state: GroupState | None = decode_parts(parts) if parts else None
        """The state of the group; None before its first use."""
        self._bundles: dict[EventId, Bundle] = {}
        self.version = 0
        """A counter that grows with every change that maintenance may have to act on."""

    # Devices that should hold keys, and devices that do.

    def may_hold(self, device: Device) -> bool:
        """Return whether a device should hold keys: its person has joined, and it is not revoked."""
        return self._control.view().may_hold_keys(*device)

    def bundle(self, device: Device) -> Bundle | None:
        """Return the prekeys that a device published last (`linnet.groups.agreement.Directory`)."""
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
    def is_member(self) -> bool:
        """Whether this device is in the group."""
        return self.known_state is not None and agreement.is_member(self.known_state)

    @property
    def can_speak(self) -> bool:
        """Whether others can open what this device seals."""
        return self.known_state is not None and self.is_member and not agreement.is_desynced(self.known_state)

    def members(self) -> dict[MemberId, Device]:
        """Return the devices that hold keys; empty if this device is not in the group."""
        return agreement.members(self.known_state) if self.known_state is not None and self.is_member else {}

    def surplus(self) -> list[MemberId]:
        """Return members that hold keys and should not: gone, revoked, or about to be added anew."""
        return [member for member, device in self.members().items() if self._is_surplus(member, device)]

    def _is_surplus(self, member: MemberId, device: Device) -> bool:
        if self.known_state is None or member == self.known_state.me:
            return False
        if device == self.ours or not self.may_hold(device) or member in self.known_state.leaving:
            return True  # We are in the group twice: two members added us without knowing of each other.
        told, known = self.bundle(device), self.known_state.history.member(member)
        return told is not None and known is not None and told.identity != known.identity

    def missing(self) -> list[Device]:
        """Return the devices that should hold keys and do not, and that have published fresh prekeys."""
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
        """Return the state of the group; begin a new one at the first use."""
        if self.known_state is None:
            self.keep(agreement.begin(self._control.room, self.ours, self._context.entropy, now))
        assert self.known_state is not None  # noqa: S101 # just set
        return self.known_state

    def keep(self, state: GroupState) -> None:
        """Store a changed state, so that maintenance acts on it."""
        self.keep_keys(state)
        self.version += 1

    def keep_keys(self, state: GroupState) -> None:
        """Store a state that differs only in keys of messages."""
        self.known_state = state
        self.keyring.keep_state(encode_parts(state))

    def forget(self, now: float) -> None:
        """Delete all keys and begin a new state: we have left, or must be added anew."""
        self.keep(agreement.begin(self._control.room, self.ours, self._context.entropy, now))

    def record_refusal(self, event: Event, reason: Reason, note: str) -> None:
        """Record that an operation was not followed, or that a message could not be opened."""
        whose = (self._control.room, event.id, event.device, event.seq)
        self._out.record(Record(Kind.REJECTED, *whose, reason=reason, note=note[:100]))


REPAIRED = 10_000
"""The most messages that became readable late and are remembered for offline readers."""
_TEXT, _WHY, _TAKEN_BACK = b"t", b"w", b"r"
_DAMAGED = b"w" + bytes(8) + Reason.DAMAGED.encode()
"""Stands for an entry that the disk has damaged; the event's position in the log is lost with it."""


class Text(Struct, frozen=True, gc=False):
    """The text of a sealed event."""

    plaintext: bytes


class Unread(Struct, frozen=True, gc=False):
    """The reason why a sealed event cannot be read here, and its position in the log."""

    reason: Reason
    position: int


class Keyring:
    """The cells of one room's group: its state, and the prekeys of its devices."""

    def __init__(self, room: TopicId, cells: Cells) -> None:
        name = room.hex()
        self._cells = cells
        self._state, self._stuck = f"group.state/{name}", f"group.stuck/{name}"
        self._bundles, self._used = f"group.bundle/{name}", f"group.used/{name}"
        self._parts: dict[bytes, bytes] = dict(cells.scan(self._state))
        self.bundles = {device_of(key): EventId(value) for key, value in cells.scan(self._bundles)}
        """For each device, the newest event that published its prekeys."""
        self.stuck: dict[EventId, None] = dict.fromkeys(EventId(k) for k, _ in cells.scan(self._stuck))
        """The operations that wait for other operations of the group."""

    @property
    def parts(self) -> Mapping[bytes, bytes]:
        """The stored parts of the group's state; empty at first."""
        return self._parts

    def keep_state(self, parts: Mapping[bytes, bytes]) -> None:
        """Write the parts of the state that have changed."""
        for key, value in parts.items():
            if self._parts.get(key) != value:
                self._cells.put(self._state, key, value)
        for key in self._parts:
            if key not in parts:
                self._cells.delete(self._state, key)
        self._parts = dict(parts)

    def keep_bundle(self, device: Device, event: EventId) -> None:
        """Store the event by which a device published its prekeys last."""
        self.bundles[device] = event
        self._cells.put(self._bundles, device.author + device.device, event)

    def use_identity(self, identity: bytes) -> None:
        """Note that a device was added with this identity key, which cannot be used again."""
        self._cells.put(self._used, identity, b"")

    def is_used(self, identity: bytes) -> bool:
        """Return whether a device was added with this identity key before."""
        return self._cells.get(self._used, identity) is not None

    def keep_stuck(self, event: EventId, is_stuck: bool) -> None:
        """Store whether an operation waits for others."""
        _set(self._cells, self._stuck, self.stuck, event, is_stuck)


class Texts:
    """The texts of one room's sealed events, or why they are unreadable, and the keys that may be shared."""

    def __init__(self, room: TopicId, cells: Cells) -> None:
        name = room.hex()
        self._cells = cells
        self._texts, self._unread = f"group.text/{name}", f"group.unread/{name}"
        self._shared, self._offered = f"group.shared/{name}", f"group.offered/{name}"
        self.unread: dict[EventId, None] = dict.fromkeys(EventId(k) for k, _ in cells.scan(self._unread))
        """The unread messages whose key may still come."""
        self.repaired = LateEvents(f"group.repaired/{name}", cells, REPAIRED)
        """The messages that were delivered unread, and became readable since."""

    def keep_text(self, event: EventId, plaintext: bytes, key: bytes | None) -> None:
        """Store the text of an event; where history is shared, also the key, to show to newcomers."""
        self._cells.put(self._texts, event, _TEXT + plaintext)
        if key is not None:
            self._cells.put(self._shared, event, key)
        _set(self._cells, self._unread, self.unread, event, False)

    def forget_text(self, event: EventId) -> None:
        """Delete the text of a redacted event, and its key if that was stored for newcomers."""
        if self._text(event) != _TAKEN_BACK:
            self._cells.put(self._texts, event, _TAKEN_BACK)
        for space in (self._shared, self._offered):
            if self._cells.get(space, event) is not None:
                self._cells.delete(space, event)
        _set(self._cells, self._unread, self.unread, event, False)

    def keep_why(self, event: EventId, reason: Reason, position: int, hope: bool) -> None:
        """Store why an event cannot be read; with `hope` it is tried again when keys come."""
        self._cells.put(self._texts, event, _WHY + position.to_bytes(8, "big") + reason.encode())
        _set(self._cells, self._unread, self.unread, event, hope)

    def text(self, event: EventId) -> Text | Unread | None:
        """Return the text of an event, or why it cannot be read (also if damaged); None if never opened."""
        kept = self._text(event)
        if kept is None:
            return None
        if kept[:1] in (_TEXT, _TAKEN_BACK):
            return Text(kept[1:])
        return Unread(Reason(kept[9:].decode()), int.from_bytes(kept[1:9], "big"))

    def tally(self) -> tuple[int, dict[Reason, int]]:
        """Return the number of readable events, and of unreadable ones by reason."""
        texts, unread = 0, Counter[Reason]()
        for kept in self._all_texts():
            if kept[:1] == _TEXT:
                texts += 1
            elif kept[:1] == _WHY:
                unread[Reason(kept[9:].decode())] += 1
        return texts, dict(sorted(unread.items()))

    def shared_key(self, event: EventId) -> bytes | None:
        """Return the stored key of a message, where history is shared."""
        return self._cells.get(self._shared, event)

    def shared(self) -> Iterator[tuple[EventId, bytes]]:
        """Yield all keys that may be shown to newcomers."""
        for key, value in self._cells.scan(self._shared):
            yield EventId(key), value

    def offer(self, event: EventId, key: bytes) -> None:
        """Store the key of a message that is not here yet."""
        self._cells.put(self._offered, event, key)

    def take_offer(self, event: EventId) -> bytes | None:
        """Remove and return the key that was stored for this message before it came; None if none was."""
        key = self._cells.get(self._offered, event)
        if key is not None:
            self._cells.delete(self._offered, event)
        return key

    def _text(self, event: EventId) -> bytes | None:
        try:
            return self._cells.get(self._texts, event)
        except CellsDamaged:
            return _DAMAGED

    def _all_texts(self) -> list[bytes]:
        try:
            return [kept for _, kept in self._cells.scan(self._texts)]
        except CellsDamaged as damage:
            return [*(kept for _, kept in damage.sound), *(_DAMAGED for _ in damage.keys)]


def _set(cells: Cells, space: str, kept: dict[EventId, None], event: EventId, is_so: bool) -> None:
    if is_so and event not in kept:
        kept[event] = None
        cells.put(space, event, b"")
    elif not is_so and event in kept:
        del kept[event]
        cells.delete(space, event)


def device_of(key: bytes) -> Device:
    """Decode the device from a cell's key."""
    return Device(AuthorId(key[:32]), DeviceId(key[32:]))
