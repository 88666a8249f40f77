"""The devices that a voice knows how to seal keys to: by their prekeys, of which the newest count."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.groups.ids import Device
from linnet.groups.prekeys import Bundle, decode_bundle

DEVICES_EACH = 16
"""Devices of one person that are told keys; the one that gave its prekeys first has to ask again."""
_PERSON_BYTES = 32


class Readers:
    """The prekeys of guests' devices in one place."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._cells = cells
        self._space = f"place reader {place.hex()}"
        self._known: dict[AuthorId, dict[DeviceId, bytes]] = {}
        for key, raw in cells.scan(self._space):
            person, device = AuthorId(key[:_PERSON_BYTES]), DeviceId(key[_PERSON_BYTES:])
            self._known.setdefault(person, {})[device] = raw

    def learn(self, device: Device, prekeys: bytes) -> bool:
        """Prekeys that a device gave; whether they are news. `RemoteError` if they are none.

        Older ones than are known are no news: somebody plays an old message again.
        """
        bundle = decode_bundle(prekeys)
        mine = self._known.setdefault(device.author, {})
        known = mine.get(device.device)
        if known is not None:
            before = decode_bundle(known)
            # Of one identity they are numbered; their dates may go back after a clock was ahead.
            is_older = (
                before.gen >= bundle.gen
                if before.identity == bundle.identity
                else before.not_before > bundle.not_before
            )
            if is_older:
                return False
        mine.pop(device.device, None)
        mine[device.device] = prekeys
        self._cells.put(self._space, device.author + device.device, prekeys)
        for surplus in list(mine)[:-DEVICES_EACH]:
            self._forget(Device(device.author, surplus))
        return True

    def forget(self, person: AuthorId) -> None:
        """Somebody is no guest any more."""
        for device in list(self._known.get(person, {})):
            self._forget(Device(person, device))

    def bundle(self, device: Device) -> Bundle:
        """The newest prekeys of a device; `RemoteError` if it gave none."""
        raw = self._known.get(device.author, {}).get(device.device)
        if raw is None:
            raise RemoteError(Reason.MISSING_PREKEYS, "a device that gave no prekeys")
        return decode_bundle(raw)

    def prekeys(self, device: Device) -> bytes:
        """The same as they came; empty if there are none."""
        return self._known.get(device.author, {}).get(device.device, b"")

    def of(self, person: AuthorId) -> list[Device]:
        """The devices of one person."""
        return [Device(person, device) for device in self._known.get(person, {})]

    def all(self) -> list[Device]:
        """All devices, in the order of their names."""
        return sorted(Device(person, device) for person, mine in self._known.items() for device in mine)

    def _forget(self, device: Device) -> None:
        mine = self._known.get(device.author, {})
        mine.pop(device.device, None)
        if not mine:
            self._known.pop(device.author, None)
        self._cells.delete(self._space, device.author + device.device)
