"""Effects: what a machine asks of its driver. The inputs are the other half: `linnet.core.inputs`.

Effects are performed in order. A trace record is an effect as well; it is defined in `linnet.trace`, since it
is a contract with readers of its own.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason

M_co = TypeVar("M_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
I_co = TypeVar("I_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)


class Send(Struct, Generic[M_co], frozen=True, gc=False):
    """Put a message into the outbox of an open link; without a link it is traced as dropped."""

    peer: PeerId
    message: M_co


class Hold(Struct, frozen=True, gc=False):
    """Keep a link to this peer open for a purpose. `linnet.peer` counts the holds and dials.

    The first hold on a peer dials it, and redials with back-off until the last is released.
    """

    peer: PeerId
    hints: tuple[str, ...]
    purpose: str


class Release(Struct, frozen=True, gc=False):
    """End the hold of a purpose on a link; the last release of both ends closes the link."""

    peer: PeerId
    purpose: str


class Blame(Struct, frozen=True, gc=False):
    """Report that this peer broke the protocol. `linnet.peer` counts the reports and hangs up after too
    many."""

    peer: PeerId
    reason: Reason


class Dial(Struct, frozen=True, gc=False):
    """Open a link to this key; ends in `LinkUp` or `DialFailed`. Does nothing if a link is open already."""

    peer: PeerId
    hints: tuple[str, ...]
    is_ours: bool
    """Whether our own user asked for this link. Other peers may be named by strangers, and are dialled within
    bounds."""


class Probe(Struct, frozen=True, gc=False):
    """Test whether this key answers at these addresses, without keeping a link; ends in `Probed`."""

    peer: PeerId
    hints: tuple[str, ...]


class Announce(Struct, frozen=True, gc=False):
    """Multicast these bytes on a local network; they may get lost."""

    network: bytes
    datagram: bytes


class Meet(Struct, frozen=True, gc=False):
    """Learn which device holds this key of a local network; ends in `Met` or `NotMet`.

    The connection that is opened for it becomes a link, unless there is one to that device already.
    """

    network: bytes
    lan: bytes
    """The key that the device announced there."""
    own: bytes
    """The key that we announce there."""
    hints: tuple[str, ...]


class HangUp(Struct, frozen=True, gc=False):
    """Close the link to this peer after sending what is queued; ends in `LinkDown` with this reason."""

    peer: PeerId
    reason: Reason


class SetTimer(Struct, Generic[T_co], frozen=True, gc=False):
    """Give this timer back as `TimerFired` after a delay in seconds. An equal timer is replaced."""

    delay: float
    timer: T_co


class CancelTimer(Struct, Generic[T_co], frozen=True, gc=False):
    """Forget the equal timer, if it is set."""

    timer: T_co


class Deliver(Struct, Generic[I_co], frozen=True, gc=False):
    """Hand items to a subscription of the local application."""

    subscription: int
    items: tuple[I_co, ...]


class Reply(Struct, Generic[R_co], frozen=True, gc=False):
    """The one answer to the command of this number."""

    request: int
    result: R_co


class AfterCommit(Struct, Generic[E_co], frozen=True, gc=False):
    """Perform these effects once all writes to the store so far are durable: they promise something."""

    effects: tuple[E_co, ...]
