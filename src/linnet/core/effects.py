"""What a machine asks of its driver. The inputs are the other half: `linnet.core.inputs`.

Effects are performed in order. A trace record is an effect as well; it is defined in
`linnet.trace`, since it is a contract with readers of its own.
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
    """Keep a link to this peer open for a purpose. `linnet.peer` counts these and dials.

    The first hold on a peer dials it, and redials with back-off until the last is released.
    """

    peer: PeerId
    hints: tuple[str, ...]
    purpose: str


class Release(Struct, frozen=True, gc=False):
    """This purpose needs the link no longer; the last release of both ends closes it."""

    peer: PeerId
    purpose: str


class Blame(Struct, frozen=True, gc=False):
    """This peer sent what it must not. `linnet.peer` counts these and hangs up on too many."""

    peer: PeerId
    reason: Reason


class Dial(Struct, frozen=True, gc=False):
    """Open a link to this key; ends in `LinkUp` or `DialFailed`. Nothing if there is one already."""

    peer: PeerId
    hints: tuple[str, ...]


class Probe(Struct, frozen=True, gc=False):
    """See whether this key answers at these addresses, without keeping a link; ends in `Probed`."""

    peer: PeerId
    hints: tuple[str, ...]


class Announce(Struct, frozen=True, gc=False):
    """Send these bytes to whoever listens on this local network; nobody answers for their arrival."""

    network: bytes
    datagram: bytes


class Meet(Struct, frozen=True, gc=False):
    """Learn which device holds this key of a local network; ends in `Met` or `NotMet`.

    What was opened for it becomes a link, unless there is one to that device already.
    """

    network: bytes
    lan: bytes
    """The key that was announced there."""
    own: bytes
    """The key that we announce there."""
    hints: tuple[str, ...]


class HangUp(Struct, frozen=True, gc=False):
    """Close the link to this peer after what was sent before; ends in `LinkDown` with this reason."""

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
    """Perform these once all that was written to the store so far is durable: they promise something."""

    effects: tuple[E_co, ...]
