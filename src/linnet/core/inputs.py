"""What can happen to a machine. The effects are the other half: `linnet.core.effects`."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason

M_co = TypeVar("M_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
C_co = TypeVar("C_co", covariant=True)


class LinkUp(Struct, frozen=True, gc=False):
    """An authenticated link to this peer is open. It is the only one to this peer."""

    peer: PeerId
    hello: Hello
    dialed: bool
    """Whether we opened it."""


class LinkDown(Struct, frozen=True, gc=False):
    """The link is gone; what was unsent or unacknowledged may be lost."""

    peer: PeerId
    reason: Reason


class DialFailed(Struct, frozen=True, gc=False):
    """No link came of a `Dial`; the driver has given up on this attempt."""

    peer: PeerId
    reason: Reason


class Probed(Struct, frozen=True, gc=False):
    """What came of a `Probe`: reachable if there is no reason."""

    peer: PeerId
    reason: Reason | None


class LocalNetwork(Struct, frozen=True, gc=False):
    """A network that this device is on, as the driver sees it."""

    network: bytes
    """What it is called here, and nowhere else: see `linnet.edge.lan_keys`."""
    day: int
    """Days since 1970: keys and ports of a local network last no longer than one."""
    port: int
    """Where this device takes links from this network today."""
    name: str
    """For people."""


class NetworkIs(Struct, frozen=True, gc=False):
    """The networks that this device is on now, all of them."""

    networks: tuple[LocalNetwork, ...]


class Heard(Struct, frozen=True, gc=False):
    """Somebody, perhaps this node, sent this to all on a local network; all of it is foreign."""

    network: bytes
    source: str
    """The IP address that it came from."""
    datagram: bytes


class Met(Struct, frozen=True, gc=False):
    """Whoever announces this key on this network is this device: both keys are proved.

    Told at both ends, also where the other one asked.
    """

    network: bytes
    lan: bytes
    peer: PeerId


class NotMet(Struct, frozen=True, gc=False):
    """Nothing came of a `Meet`."""

    network: bytes
    lan: bytes
    reason: Reason


class Received(Struct, Generic[M_co], frozen=True, gc=False):
    """A decoded message from a peer; its content is still foreign."""

    peer: PeerId
    message: M_co


class Congested(Struct, frozen=True, gc=False):
    """The outbox towards this peer is past its high mark."""

    peer: PeerId


class Drained(Struct, frozen=True, gc=False):
    """The outbox towards this peer is below its low mark again."""

    peer: PeerId


class TimerFired(Struct, Generic[T_co], frozen=True, gc=False):
    """A timer that was set, and neither cancelled nor set again, has run out."""

    timer: T_co


class Asked(Struct, Generic[C_co], frozen=True, gc=False):
    """A command of the local application; answered by one `Reply` with the same number."""

    request: int
    command: C_co
