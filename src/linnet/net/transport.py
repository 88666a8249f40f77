"""The interface that every transport implements, to carry frames between two nodes.

Above it, once for all transports: choosing an address (`dialer`), the identity of the other end
(`handshake`), one link for each pair (`link_table`), lanes, coalescing and age limits (`link`). Below it:
sockets, encryption, queues in memory. See docs/adr/0036-transports.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Protocol

from linnet.core.errors import Refused
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.failure import LinkFailure

LOOPBACK = ("tls://127.0.0.1:0",)
"""The default address of a listener: only for this machine, at a free port."""


class Lane(IntEnum):
    """The order that a transport without order has to keep for the frames of one write."""

    CONTROL = 0
    """The frames arrive in the order in which they were written."""
    DATA = 1
    """The frames may overtake each other, and be overtaken by control frames."""
    LAST = 2
    """The frames arrive after everything else; nothing is written behind them."""


class Consumer(Protocol):
    """Receives the data of a connection."""

    def data_received(self, data: bytes) -> None:
        """Take these bytes. On a connection without order they are whole frames."""

    def writable(self) -> None:
        """Go on writing: the connection takes bytes again after it was paused."""

    def connection_lost(self, reason: Reason) -> None:
        """Note the end: nothing comes or goes any more. Called once, after the last bytes."""


class Connection(Protocol):
    """Frames to one remote end, encrypted or in process; reliable until the connection is lost.

    None of its methods calls the consumer before it returns, except `hand_over`.
    """

    @property
    def is_ordered(self) -> bool:
        """Whether everything arrives in the order of writing; otherwise `Lane` defines the order."""

    @property
    def remote_key(self) -> PeerId | None:
        """The key that the transport itself has proved for the other end; None: it has proved none."""

    @property
    def local_key(self) -> PeerId | None:
        """The key of ours that the transport itself has proved to the other end; None: none."""

    @property
    def remote_address(self) -> str | None:
        """The address ``HOST:PORT`` that the other end has proved, since answers reached it there; None: no
        address of its own."""

    @property
    def lost(self) -> asyncio.Future[None]:
        """Done when the connection is gone."""

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent: neither end has closed it."""

    @property
    def is_paused(self) -> bool:
        """Whether the connection holds enough bytes for now; later it calls `Consumer.writable`."""

    @property
    def unsent(self) -> int:
        """The bytes that were written and wait on this side."""

    def write(self, data: bytes, lane: Lane = Lane.CONTROL) -> None:
        """Send whole frames in one piece; nothing happens if the connection is closed or gone.

        Frames of several lanes may be joined in one write if the connection is ordered, and only then.
        """

    def hand_over(self, consumer: Consumer) -> None:
        """Give this consumer everything from now on, beginning with data that came while there was none."""

    def pause_reading(self) -> None:
        """Bring nothing more for now: data of the other end wait, and pause it in the end."""

    def resume_reading(self) -> None:
        """Bring data again."""

    def close(self, reason: Reason = Reason.NOT_NEEDED) -> None:
        """Send the written data, then close. Nothing happens if it is closed or gone.

        The reason is for our own consumer; the first one counts.
        """

    def abort(self) -> None:
        """Close at once, and drop waiting data. Nothing happens if the connection is gone."""


class Incoming(Protocol):
    """A stranger at a listener. Nothing was done for it yet."""

    @property
    def remote_address(self) -> str:
        """The stranger's address, for records."""

    async def establish(self) -> Connection:
        """Prepare the connection so that frames can flow; `LinkFailure` if the stranger cannot."""

    def refuse(self) -> None:
        """Turn the stranger away. Nothing happens once `establish` was called."""


class TransportListener(Protocol):
    """An address at which a node can be dialled."""

    @property
    def hint(self) -> str:
        """The address for others to dial, as far as this machine knows."""

    def start(self, accept: Callable[[Incoming], None], failed: Callable[[OSError], None]) -> None:
        """Hand over every stranger until `stop`; report failures to accept, and go on."""

    def stop(self) -> None:
        """Hand over no more strangers for now."""

    def close(self) -> None:
        """Free the address."""


class Transport(Protocol):
    """One way to carry frames, as one node with one key."""

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes of the hints that this transport understands."""

    async def resolve(self, hint: str) -> list[str]:
        """Return a hint for each address that this one stands for; `LinkFailure` if there is none."""

    async def dial(self, hint: str, expected: PeerId) -> Connection:
        """Connect to the address of a resolved hint, where the holder of this key is expected.

        `LinkFailure` if that fails, with ``wrong_key`` if the transport proves another key. A hint may name
        the key that is shown there in place of the device's own: then that one is expected.
        """

    def listen(self, hint: str) -> TransportListener:
        """Listen at an address; `LinkFailure` names it if it is not available."""


def find_transport(hint: str, transports: Iterable[Transport]) -> Transport:
    """Return the transport that understands a hint; `LinkFailure` with ``no_address`` if none does."""
    scheme = hint.partition("://")[0]
    for transport in transports:
        if scheme in transport.schemes:
            return transport
    raise LinkFailure(Reason.NO_ADDRESS, f"{hint!r} is no address that we can dial")


def listen(hints: Sequence[str], transports: Sequence[Transport]) -> list[TransportListener]:
    """Listen at these addresses before a node runs, so that it knows them; port 0 takes a free one.

    `Refused` names an address that is not available; none is held then.
    """
    listeners: list[TransportListener] = []
    try:
        for hint in hints:
            listeners.append(find_transport(hint, transports).listen(hint))  # noqa: PERF401 - see below
    except LinkFailure as failure:
        # Free those before the one that failed.
        for listener in listeners:
            listener.close()
        raise Refused(failure.reason, failure.detail) from failure
    return listeners
