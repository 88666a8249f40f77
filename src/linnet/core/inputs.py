"""Inputs: what can happen to a machine. The effects are the other half: `linnet.core.effects`."""

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
    """Whether we dialled."""
    network: str | None
    """The prefix of the address that the peer has proved; None: it counts for nobody but this peer."""


class LinkDown(Struct, frozen=True, gc=False):
    """The link is closed; unsent or unacknowledged messages may be lost."""

    peer: PeerId
    reason: Reason


class DialFailed(Struct, frozen=True, gc=False):
    """A `Dial` failed to open a link; the driver has given up this attempt."""

    peer: PeerId
    reason: Reason


class Probed(Struct, frozen=True, gc=False):
    """The outcome of a `Probe`: reachable if there is no reason."""

    peer: PeerId
    reason: Reason | None


class LocalNetwork(Struct, frozen=True, gc=False):
    """A local network that this device is on, as the driver sees it."""

    network: bytes
    """The id of the network on this device alone: see `linnet.edge.announcement`."""
    day: int
    """Days since 1970: keys and ports of a local network last no longer than one."""
    port: int
    """The port at which this device accepts links from this network today."""
    name: str
    """The name of the network, for people."""


class NetworkIs(Struct, frozen=True, gc=False):
    """All networks that this device is on now."""

    networks: tuple[LocalNetwork, ...]


class Heard(Struct, frozen=True, gc=False):
    """A datagram that was multicast on a local network, perhaps by this node; nothing in it is trusted."""

    network: bytes
    source: str
    """The IP address of the sender."""
    datagram: bytes


class Met(Struct, frozen=True, gc=False):
    """The device that announces this key on this network is known: both keys are proved.

    Both ends get it, also where the other one asked.
    """

    network: bytes
    lan: bytes
    peer: PeerId


class NotMet(Struct, frozen=True, gc=False):
    """A `Meet` failed."""

    network: bytes
    lan: bytes
    reason: Reason


class Received(Struct, Generic[M_co], frozen=True, gc=False):
    """A decoded message from a peer; its content is not checked yet."""

    peer: PeerId
    message: M_co


class Congested(Struct, frozen=True, gc=False):
    """The outbox to this peer is above its high mark."""

    peer: PeerId


class Drained(Struct, frozen=True, gc=False):
    """The outbox to this peer is below its low mark again."""

    peer: PeerId


class TimerFired(Struct, Generic[T_co], frozen=True, gc=False):
    """A timer ran out that was neither cancelled nor set again."""

    timer: T_co


class Asked(Struct, Generic[C_co], frozen=True, gc=False):
    """A command of the local application; answered by one `Reply` with the same number."""

    request: int
    command: C_co
