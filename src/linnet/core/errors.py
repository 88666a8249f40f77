"""The errors of Linnet, as one tree.

::

    LinnetError
    ├── LocalError              we were used wrongly; the message says what to do
    │   ├── BadText             an id, address or name that a person typed is wrong
    │   ├── Refused             a limit or a rule stands against it; carries a `Reason`
    │   ├── StoreError          the store cannot be opened, read or written
    │   │   └── StoreLost       it is not the one that was here: to go on would fork this device's chains
    │   ├── TraceError          a trace cannot be opened or read
    │   └── ConfigError         the configuration is wrong; names file and line
    └── RemoteError             a peer sent what it must not; carries a `Reason`
        ├── MalformedMessage    bytes that are no message of ours, or break a limit
        └── InvalidEvent        an event that fails a check

Anything else that leaves a function of ours is a bug.
"""

from __future__ import annotations

from linnet.core.reasons import Reason


class LinnetError(Exception):
    """The root of everything that Linnet raises on purpose."""


class LocalError(LinnetError):
    """Our own side asked for something impossible."""


class BadText(LocalError):
    """Something that a person typed does not mean what it should."""


class Refused(LocalError):
    """A limit or a rule stands against what was asked."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


class StoreError(LocalError):
    """The store cannot be opened, read or written."""


class StoreLost(StoreError):
    """The store is gone, or older than it was: to go on would fork the chains of this device."""


class TraceError(LocalError):
    """A trace cannot be opened or read."""


class ConfigError(LocalError):
    """The configuration is wrong."""


class RemoteError(LinnetError):
    """A peer's fault: never a reason for us to stop."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


class MalformedMessage(RemoteError):
    """Foreign bytes that are no message of ours, or break one of its limits."""

    def __init__(self, detail: str, reason: Reason = Reason.MALFORMED) -> None:
        super().__init__(reason, detail)


class InvalidEvent(RemoteError):
    """An event that fails a check; nothing of it may be used."""
