"""The errors of Linnet, as one tree.

::

    LinnetError
    ├── LocalError              our caller is at fault; the message says what to do
    │   ├── BadText             an id, address or name that a person typed is wrong
    │   ├── Refused             a limit or a rule forbids it; carries a `Reason`
    │   ├── StoreError          the store cannot be opened, read or written
    │   │   ├── StoreLost       it is gone or too old: to go on would fork this device's chains
    │   │   └── CellsDamaged    stored values are damaged; carries the sound ones
    │   ├── TraceError          a trace cannot be opened or read
    │   └── ConfigError         the configuration is wrong; names file and line
    └── RemoteError             a peer broke the protocol; carries a `Reason`
        ├── MalformedMessage    bytes that are no message of ours, or break a limit
        └── InvalidEvent        an event that fails a check

Anything else that leaves a function of ours is a bug.
"""

from __future__ import annotations

from linnet.core.reasons import Reason


class LinnetError(Exception):
    """The root of all errors that Linnet raises on purpose."""


class LocalError(LinnetError):
    """The caller on our own side asked for something impossible."""


class BadText(LocalError):
    """A text that a person typed does not parse as what it should be."""


class Refused(LocalError):
    """A limit or a rule forbids what was asked."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


class StoreError(LocalError):
    """The store cannot be opened, read or written."""


class StoreLost(StoreError):
    """The store is gone, or older than it was: to go on would fork the chains of this device."""


class CellsDamaged(StoreError):
    """Stored values of a space differ from what was written there."""

    def __init__(
        self, detail: str, space: str, keys: tuple[bytes, ...], sound: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(detail)
        self.space = space
        self.keys = keys
        """Their keys, as far as these can be read: keys are damaged, too."""
        self.sound = sound
        """The undamaged values that a scan of the space found."""


class TraceError(LocalError):
    """A trace cannot be opened or read."""


class ConfigError(LocalError):
    """The configuration is wrong."""


class RemoteError(LinnetError):
    """A peer is at fault: never a reason for us to stop."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


class MalformedMessage(RemoteError):
    """Bytes from a peer that are no message of ours, or break one of its limits."""

    def __init__(self, detail: str, reason: Reason = Reason.MALFORMED) -> None:
        super().__init__(reason, detail)


class InvalidEvent(RemoteError):
    """An event that fails a check; no part of it may be used."""
