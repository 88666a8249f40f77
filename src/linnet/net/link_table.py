"""The links of a node: dialling, accepting, and one link per pair of nodes.

Two nodes may dial each other at the same time. The link that the smaller key dialled wins, on
both sides:

- The larger key takes the smaller one's dial at once and withdraws its own.
- The smaller key keeps the larger one's dial waiting until its own has ended. If that succeeded,
  the other is refused with ``duplicate_link``; if it failed, or takes too long, the other is taken.

A peer dials only while it has no link. So one that dials while we believe in a link has lost it:
its new link replaces ours, at once if it dialled ours too; otherwise after a moment in which it
could withdraw a dial that crossed ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from msgspec import Struct

from linnet.core.effects import Meet
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Met, NotMet, Probed
from linnet.core.reasons import Reason
from linnet.edge.announcement import is_lan_hint
from linnet.identity.keys import SigningKey
from linnet.net.admission import Admission, Networks
from linnet.net.config import NetConfig
from linnet.net.dialer import Dialer
from linnet.net.failure import LinkFailure
from linnet.net.handshake import (
    Client,
    FrameStream,
    check_client,
    check_local_client,
    dialled_key,
    introduce,
    read_client_hello,
    read_hello,
    refuse,
    send_hello,
    send_proof,
)
from linnet.net.interfaces import own_addresses
from linnet.net.link import Link, LinkOwner
from linnet.net.local_keys import LocalKeys
from linnet.net.probes import Probes, may_lead_inside
from linnet.net.transport import Connection, Incoming, Transport, TransportListener
from linnet.peer.interface import Input
from linnet.trace.records import Kind, Record


class LinkTableOwner(LinkOwner, Protocol):
    """The owner of a table of links: a driver."""

    @property
    def hello(self) -> Hello:
        """The `Hello` to send first on each link."""

    def put(self, event: Input) -> None:
        """Handle an input."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run this until it ends or the driver does."""


_PROBE_MARGIN = 0.25
"""Seconds after its time-out for which a dial may still be ending."""


def _may_always(place: str) -> bool:
    return True


class _Dial(Struct, eq=False):
    """A dial under way."""

    ended: asyncio.Future[None]
    task: asyncio.Task[None] | None = None


class LinkTable:
    """The links of one node."""

    def __init__(
        self,
        key: SigningKey,
        owner: LinkTableOwner,
        transports: Sequence[Transport],
        config: NetConfig,
        local: LocalKeys,
    ) -> None:
        self._key = key
        self._own = PeerId(key.public)
        self._owner = owner
        self._config = config
        self._local = local
        self._dialer = Dialer(transports, config, asyncio.get_running_loop().time)
        self._slots = asyncio.Semaphore(config.max_dials)
        self._links: dict[PeerId, Link] = {}
        self.get = self._links.get
        """Returns the link to a peer, if it is up; called for every message that is sent."""
        self._ending: dict[Link, None] = {}
        self._dials: dict[PeerId, _Dial] = {}
        self._waiting: dict[PeerId, FrameStream] = {}
        self._admission = Admission(config.max_handshakes)
        self._networks = Networks(config.shared_networks)
        self._probes = Probes(self._networks)
        self._closing = False
        self._listeners: list[TransportListener] = []

    @property
    def links(self) -> list[Link]:
        """All links that are up."""
        return list(self._links.values())

    def dial(self, peer: PeerId, hints: tuple[str, ...], is_ours: bool = False) -> None:
        """Open a link unless there is one or it is being opened, or all are being closed.

        With `is_ours` our user named the peer, and what others may have us dial has no bearing on it.

        A dial effect waits for a commit, which may end after the node has stopped.
        """
        if peer in self._links or peer in self._dials or self._closing:
            return
        dial = _Dial(asyncio.get_running_loop().create_future())
        self._dials[peer] = dial
        dial.task = self._owner.spawn(self._dial(peer, hints, is_ours, dial), "dial")

    def probe(self, peer: PeerId, hints: tuple[str, ...]) -> None:
        """Test whether this peer can be dialled at these addresses."""
        self._owner.spawn(self._probe(peer, hints), "probe")

    def meet(self, meet: Meet) -> None:
        """Learn which device holds a key of a local network."""
        self._local.learn(meet.lan, meet.network)
        self._owner.spawn(self._meet(meet), "meet")

    def serve(self, listener: TransportListener) -> None:
        """Accept links from peers at this listener."""
        self._listeners.append(listener)
        listener.start(self._accept, self._record_unaccepted)

    def retire(self, listener: TransportListener) -> None:
        """Stop accepting links at this listener, and close it."""
        self._listeners.remove(listener)
        listener.close()

    def stop_serving(self) -> None:
        """Stop accepting links; afterwards the listeners can be closed."""
        for listener in self._listeners:
            listener.stop()

    def handle_link_end(self, link: Link, reason: Reason) -> None:
        """Remove a link that is over for the machine; it may still be sending its last data."""
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
            self._owner.record(Record(Kind.LINK_DOWN, peer=link.peer, reason=reason))
            self._owner.put(LinkDown(link.peer, reason))
        if not link.connection.lost.done():
            self._ending[link] = None
            link.connection.lost.add_done_callback(lambda _: self._ending.pop(link, None))

    async def hang_up_all(self, reason: Reason) -> None:
        """Close every link in good order, and return when all are closed. No more links come up."""
        self._closing = True
        for link in self.links:
            link.hang_up(reason)
        rest = [link.connection.lost for link in self._ending]
        if rest:
            await asyncio.wait(rest, timeout=self._config.linger)
        for link in list(self._ending):
            link.abort()

    async def _dial(self, peer: PeerId, hints: Iterable[str], is_ours: bool, dial: _Dial) -> None:
        try:
            async with self._slots:
                stream, hello = await self._open(peer, hints, is_ours)
        except LinkFailure as failure:
            self._end_dial(peer, dial)
            note = f"dial: {failure.detail}"[:200]
            self._owner.record(Record(Kind.CONTROL, peer=peer, reason=failure.reason, note=note))
            self._owner.put(DialFailed(peer, failure.reason))
        else:
            self._add_link(peer, hello, True, stream)
        finally:
            self._end_dial(peer, dial)

    def _end_dial(self, peer: PeerId, dial: _Dial) -> None:
        if self._dials.get(peer) is dial:
            del self._dials[peer]
        if not dial.ended.done():
            dial.ended.set_result(None)

    async def _open(self, peer: PeerId, hints: Iterable[str], is_ours: bool) -> tuple[FrameStream, Hello]:
        if peer == self._own:
            raise LinkFailure(Reason.WRONG_KEY, "this is our own key")
        connection = await self._reach(peer, hints, is_ours)
        hello = self._owner.hello
        stream = FrameStream(connection)
        async with self._limit_handshake(connection):
            if connection.remote_key == peer:
                await send_proof(stream, self._key, hello)
            elif await self._introduce(stream) != peer:
                refuse(stream, Reason.WRONG_KEY)
                raise LinkFailure(Reason.WRONG_KEY, "another device holds this key of a local network")
            else:
                send_hello(stream, hello)
            theirs = await read_hello(stream, hello)
        return stream, theirs

    async def _reach(self, peer: PeerId, hints: Iterable[str], is_ours: bool) -> Connection:
        may_try = _may_always if is_ours else self._may_reach
        return await self._dialer.reach(peer, self._local.dialable(hints), may_try, is_ours)

    def _may_reach(self, place: str) -> bool:
        """Return whether to dial an address that others may have named."""
        linked = (link.connection.remote_address or "" for link in self._links.values())
        return is_lan_hint(place) or may_lead_inside(place, linked, own_addresses)

    @asynccontextmanager
    async def _limit_handshake(self, connection: Connection) -> AsyncIterator[None]:
        """Limit the time of a handshake that we began, and close the connection if it fails."""
        try:
            async with asyncio.timeout(self._config.dial_timeout):
                yield
        except TimeoutError as error:
            connection.abort()
            raise LinkFailure(Reason.DIAL_TIMEOUT, "the peer did not finish the handshake") from error
        except BaseException:
            connection.close()
            raise

    async def _introduce(self, stream: FrameStream) -> PeerId:
        """Learn the device behind the dialled key of a local network; both ends learn each other's."""
        lan = dialled_key(stream)
        own = self._local.own_for(lan)
        if own is None:
            raise LinkFailure(Reason.NO_ADDRESS, "we are on this local network no longer")
        peer = await introduce(stream, self._key, own.key)
        self._owner.put(Met(own.network, lan, peer))
        return peer

    async def _meet(self, meet: Meet) -> None:
        try:
            async with self._slots:
                connection = await self._reach(PeerId(meet.lan), meet.hints, is_ours=False)
                stream = FrameStream(connection)
                async with self._limit_handshake(connection):
                    peer = await self._introduce(stream)
        except LinkFailure as failure:
            self._owner.put(NotMet(meet.network, meet.lan, failure.reason))
            return
        await self._link_met(peer, stream)

    async def _link_met(self, peer: PeerId, stream: FrameStream) -> None:
        """Let the connection on which a device was met become a link, unless there is one."""
        if peer in self._links or peer in self._dials or self._closing:
            refuse(stream, Reason.DUPLICATE_LINK)
            return
        dial = _Dial(asyncio.get_running_loop().create_future(), asyncio.current_task())
        self._dials[peer] = dial
        hello = self._owner.hello
        try:
            async with self._limit_handshake(stream.connection):
                send_hello(stream, hello)
                theirs = await read_hello(stream, hello)
        except LinkFailure as failure:
            note = f"after meeting: {failure.detail}"[:200]
            self._owner.record(Record(Kind.CONTROL, peer=peer, reason=failure.reason, note=note))
        else:
            self._add_link(peer, theirs, True, stream)
        finally:
            self._end_dial(peer, dial)

    async def _probe(self, peer: PeerId, hints: Iterable[str]) -> None:
        """Dial a peer for itself. All failures take the same time: they tell nothing about the address."""
        loop = asyncio.get_running_loop()

        def may_try(place: str) -> bool:
            link = self._links.get(peer)
            if peer == self._own:
                return True  # We are our own tracker.
            # A peer that has left has no address that it could be tried at, and nobody waits for the answer.
            return link is not None and self._probes.may_try(
                peer, link.connection.remote_address, place, loop.time()
            )

        reason: Reason | None = None
        try:
            async with self._slots:
                over = loop.time() + self._config.dial_timeout + _PROBE_MARGIN
                hints = self._local.dialable(hints)
                connection = await self._dialer.reach(peer, hints, may_try, is_free=True)
            connection.close()
        except LinkFailure as failure:
            note = f"tried for itself: {failure.detail}"[:200]
            self._owner.record(Record(Kind.CONTROL, peer=peer, reason=failure.reason, note=note))
            reason = Reason.UNREACHABLE
            await asyncio.sleep(over - loop.time())
        self._owner.put(Probed(peer, reason))

    def _accept(self, incoming: Incoming) -> None:
        origin = incoming.remote_address
        greediest = self._admission.make_room()
        if greediest is not None:
            self._reject(Reason.TOO_MANY_LINKS, f"{greediest}: its oldest stranger made room for another")
        task = self._owner.spawn(self._welcome(incoming), f"welcome {origin}")
        self._admission.serve(task, origin)
        # A task that is cancelled before its first step never gets to close anything.
        task.add_done_callback(lambda _: incoming.refuse())

    def _record_unaccepted(self, error: OSError) -> None:
        self._reject(Reason.TOO_MANY_LINKS, f"accept: {error}")

    async def _welcome(self, incoming: Incoming) -> None:
        connection: Connection | None = None
        client: Client | None = None
        try:
            async with asyncio.timeout(self._config.handshake_timeout):
                connection = await incoming.establish()
                stream = FrameStream(connection)
                client = await self._check_client(stream)
            await self._admit(client.peer, stream)
            send_hello(stream, self._owner.hello)
        except (TimeoutError, LinkFailure) as failure:
            if connection is not None:
                connection.abort() if isinstance(failure, TimeoutError) else connection.close()
            self._record_refusal(failure, incoming.remote_address, client)
        except BaseException:
            if connection is not None:
                connection.abort()
            raise
        else:
            self._add_link(client.peer, client.hello, False, stream)

    async def _check_client(self, stream: FrameStream) -> Client:
        shown = stream.connection.local_key
        if shown is None or shown == self._own:
            return await check_client(stream, self._key, self._owner.hello)
        own = self._local.own_key(shown)
        if own is None:
            raise LinkFailure(Reason.WRONG_KEY, "we are called so no longer")
        local = await check_local_client(stream, self._key, own.key)
        self._local.learn(local.lan, own.network)
        self._owner.put(Met(own.network, local.lan, local.peer))
        return Client(local.peer, await read_client_hello(stream, self._owner.hello))

    async def _admit(self, peer: PeerId, stream: FrameStream) -> None:
        """Return when a link that this peer dialled may come up; refuse it with `LinkFailure` otherwise."""
        dial = self._dials.get(peer)
        if dial is not None:
            if self._own < peer and await self._wait(peer, stream, dial.ended) and peer in self._links:
                refuse(stream, Reason.DUPLICATE_LINK)
                raise LinkFailure(Reason.DUPLICATE_LINK, "our own dial was first")
            if dial.task is not None:
                dial.task.cancel()
            self._end_dial(peer, dial)
        link = self._links.get(peer)
        if link is not None and link.dialed:
            await self._wait(peer, stream, link.connection.lost)

    async def _wait(self, peer: PeerId, stream: FrameStream, event: asyncio.Future[None]) -> bool:
        """Keep this peer's dial waiting for an event; return whether the event came in time.

        `LinkFailure` if the peer withdraws the dial, or dials once more.
        """
        earlier = self._waiting.get(peer)
        if earlier is not None:
            refuse(earlier, Reason.DUPLICATE_LINK)
        self._waiting[peer] = stream
        try:
            await asyncio.wait(
                (stream.connection.lost, event),
                timeout=self._config.hold_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            if self._waiting.get(peer) is stream:
                del self._waiting[peer]
        if not stream.connection.is_open:
            raise LinkFailure(Reason.REMOTE_CLOSED, "the peer withdrew its dial")
        return event.done()

    def _add_link(self, peer: PeerId, hello: Hello, dialed: bool, stream: FrameStream) -> None:
        if self._closing:
            stream.connection.abort()
            return
        former = self._links.get(peer)
        if former is not None:
            former.hang_up(Reason.DUPLICATE_LINK)
        link = Link(peer, hello, dialed, stream.connection, self._owner, self._config)
        self._links[peer] = link
        self._owner.record(Record(Kind.LINK_UP, peer=peer))
        self._owner.put(LinkUp(peer, hello, dialed, self._networks.of(stream.connection.remote_address)))
        stream.hand_over(link)

    def _record_refusal(self, failure: Exception, origin: str, client: Client | None) -> None:
        if isinstance(failure, LinkFailure):
            # A stranger that leaves without a word wanted to see whether we are here: a probe is no attack.
            if failure.reason is not Reason.REMOTE_CLOSED:
                self._reject(failure.reason, f"{origin}: {failure.detail}", client)
        else:
            self._reject(Reason.TIMEOUT, f"{origin}: no link within the time for it", client)

    def _reject(self, reason: Reason, note: str, client: Client | None = None) -> None:
        peer = None if client is None else client.peer
        self._owner.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note[:200]))
