"""What an encrypted room keeps in the store: its group's state, what was read, what could not be.

Keys are deleted as soon as they were used, so what a message says is kept when it is opened, in the same
commit as the state that has forgotten its key; so is why it could not be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.groups.ids import Device

REPAIRED = 10_000
"""Messages read late that are remembered for readers that are away."""
_TEXT, _WHY, _TAKEN_BACK = b"t", b"w", b"r"


class Text(Struct, frozen=True, gc=False):
    """What a sealed event says."""

    plaintext: bytes


class Unread(Struct, frozen=True, gc=False):
    """Why a sealed event cannot be read here, and where it stands in the log."""

    reason: Reason
    position: int


class Repaired(Struct, frozen=True, gc=False):
    """A message that was read later than it came, and where it stands in the log."""

    event: EventId
    position: int


class Keyring:
    """The cells of one room."""

    def __init__(self, room: TopicId, cells: Cells) -> None:
        name = room.hex()
        self._cells = cells
        self._state, self._texts = f"group.state/{name}", f"group.text/{name}"
        self._shared, self._offered = f"group.shared/{name}", f"group.offered/{name}"
        self._bundles, self._used = f"group.bundle/{name}", f"group.used/{name}"
        self._stuck, self._unread = f"group.stuck/{name}", f"group.unread/{name}"
        self._parts: dict[bytes, bytes] = dict(cells.scan(self._state))
        self.bundles: dict[Device, EventId] = {}
        """For each device the newest event that told its prekeys."""
        for key, value in cells.scan(self._bundles):
            self.bundles[device_of(key)] = EventId(value)
        self.stuck: dict[EventId, None] = dict.fromkeys(EventId(k) for k, _ in cells.scan(self._stuck))
        """Operations that wait for others of the group."""
        self.unread: dict[EventId, None] = dict.fromkeys(EventId(k) for k, _ in cells.scan(self._unread))
        """Messages whose key may come yet."""
        self._repaired = f"group.repaired/{name}"
        self.repaired: dict[int, Repaired] = {}
        """Messages that were read later than they came, in the order in which that happened."""
        for key, value in cells.scan(self._repaired):
            position = int.from_bytes(value[:8], "big")
            self.repaired[int.from_bytes(key, "big")] = Repaired(EventId(value[8:]), position)

    @property
    def parts(self) -> Mapping[bytes, bytes]:
        """The state of the group, as it was kept; nothing at first."""
        return self._parts

    def keep_state(self, parts: Mapping[bytes, bytes]) -> None:
        """Write what has changed of the state."""
        for key, value in parts.items():
            if self._parts.get(key) != value:
                self._cells.put(self._state, key, value)
        for key in self._parts:
            if key not in parts:
                self._cells.delete(self._state, key)
        self._parts = dict(parts)

    def keep_bundle(self, device: Device, event: EventId) -> None:
        """A device has told its prekeys."""
        self.bundles[device] = event
        self._cells.put(self._bundles, device.author + device.device, event)

    def use_identity(self, identity: bytes) -> None:
        """A device was added by this key: to be added again it needs another."""
        self._cells.put(self._used, identity, b"")

    def is_used(self, identity: bytes) -> bool:
        """Whether a device was added by this key before."""
        return self._cells.get(self._used, identity) is not None

    def keep_text(self, event: EventId, plaintext: bytes, key: bytes | None) -> None:
        """What an event says; where history is shared, with the key that others may be shown."""
        self._cells.put(self._texts, event, _TEXT + plaintext)
        if key is not None:
            self._cells.put(self._shared, event, key)
        self._set(self._unread, self.unread, event, False)

    def forget_text(self, event: EventId) -> None:
        """An event was taken back: what it said is deleted, and the key that others could be shown."""
        if self._cells.get(self._texts, event) != _TAKEN_BACK:
            self._cells.put(self._texts, event, _TAKEN_BACK)
        for space in (self._shared, self._offered):
            if self._cells.get(space, event) is not None:
                self._cells.delete(space, event)
        self._set(self._unread, self.unread, event, False)

    def keep_why(self, event: EventId, reason: Reason, position: int, hope: bool) -> None:
        """An event at this position of the log cannot be read; with hope it is tried when keys come."""
        self._cells.put(self._texts, event, _WHY + position.to_bytes(8, "big") + reason.encode())
        self._set(self._unread, self.unread, event, hope)

    def repair(self, event: EventId, position: int) -> None:
        """A message that was handed over unread can be read: durable readers are told, also later."""
        number = next(reversed(self.repaired), 0) + 1
        self.repaired[number] = Repaired(event, position)
        self._cells.put(self._repaired, number.to_bytes(8, "big"), position.to_bytes(8, "big") + event)
        if len(self.repaired) > REPAIRED:
            oldest = next(iter(self.repaired))
            del self.repaired[oldest]
            self._cells.delete(self._repaired, oldest.to_bytes(8, "big"))

    def text(self, event: EventId) -> Text | Unread | None:
        """What is known of what an event says."""
        kept = self._cells.get(self._texts, event)
        if kept is None:
            return None
        if kept[:1] in (_TEXT, _TAKEN_BACK):
            return Text(kept[1:])
        return Unread(Reason(kept[9:].decode()), int.from_bytes(kept[1:9], "big"))

    def tally(self) -> tuple[int, dict[Reason, int]]:
        """How many events can be read here, and how many cannot, by why."""
        texts, unread = 0, Counter[Reason]()
        for _, kept in self._cells.scan(self._texts):
            if kept[:1] == _TEXT:
                texts += 1
            elif kept[:1] == _WHY:
                unread[Reason(kept[9:].decode())] += 1
        return texts, dict(sorted(unread.items()))

    def shared_key(self, event: EventId) -> bytes | None:
        """The key of a message, where history is shared."""
        return self._cells.get(self._shared, event)

    def shared(self) -> Iterator[tuple[EventId, bytes]]:
        """All keys that may be shown to others."""
        for key, value in self._cells.scan(self._shared):
            yield EventId(key), value

    def offer(self, event: EventId, key: bytes) -> None:
        """Somebody shows the key of a message that is not here yet."""
        self._cells.put(self._offered, event, key)

    def take_offer(self, event: EventId) -> bytes | None:
        """A key that was shown for this message, once."""
        key = self._cells.get(self._offered, event)
        if key is not None:
            self._cells.delete(self._offered, event)
        return key

    def keep_stuck(self, event: EventId, is_stuck: bool) -> None:
        """An operation waits for others, or no longer."""
        self._set(self._stuck, self.stuck, event, is_stuck)

    def _set(self, space: str, kept: dict[EventId, None], event: EventId, is_so: bool) -> None:
        if is_so and event not in kept:
            kept[event] = None
            self._cells.put(space, event, b"")
        elif not is_so and event in kept:
            del kept[event]
            self._cells.delete(space, event)


def device_of(key: bytes) -> Device:
    """The device of a cell's key."""
    return Device(AuthorId(key[:32]), DeviceId(key[32:]))
