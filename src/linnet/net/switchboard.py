"""Which links there are: dialling, accepting, and one link per pair of nodes.

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
import socket
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from linnet.core.effects import Meet
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Met, NotMet, Probed
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.net.address import Scheme
from linnet.net.channel import Channel
from linnet.net.config import NetConfig
from linnet.net.dialing import reach
from linnet.net.failure import LinkFailure
from linnet.net.greeting import Guest, authenticate, await_hello, receive_guest, refuse, say_hello
from linnet.net.link import Link, LinkOwner
from linnet.net.listener import Listener
from linnet.net.local_book import LocalBook
from linnet.net.local_greeting import await_client_hello, introduce, receive_local_guest, say_client_hello
from linnet.net.tls import client_context
from linnet.peer.interface import Input
from linnet.trace.records import Kind, Record


class SwitchboardOwner(LinkOwner, Protocol):
    """Whom a switchboard serves: a driver."""

    @property
    def hello(self) -> Hello:
        """What to say first on each link."""

    def put(self, event: Input) -> None:
        """This happened."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run this until it ends or the driver does."""


class _Dial(Struct, eq=False):
    """A dial under way."""

    ended: asyncio.Future[None]
    task: asyncio.Task[None] | None = None


class Switchboard:
    """The links of one node."""

    def __init__(self, key: SigningKey, owner: SwitchboardOwner, config: NetConfig, local: LocalBook) -> None:
        self._key = key
        self._own = PeerId(key.public)
        self._owner = owner
        self._config = config
        self._local = local
        self._context = client_context()
        self._slots = asyncio.Semaphore(config.max_dials)
        self._links: dict[PeerId, Link] = {}
        self._ending: dict[Link, None] = {}
        self._dials: dict[PeerId, _Dial] = {}
        self._waiting: dict[PeerId, Channel] = {}
        self._strangers = 0
        self._closing = False
        self._listeners: list[Listener] = []

    def get(self, peer: PeerId) -> Link | None:
        """The link to this peer, if it is up."""
        return self._links.get(peer)

    @property
    def links(self) -> list[Link]:
        """All links that are up."""
        return list(self._links.values())

    def dial(self, peer: PeerId, hints: tuple[str, ...]) -> None:
        """Open a link unless there is one or it is being opened, or all are being closed.

        A dial waits for a commit, which may end after the node has stopped.
        """
        if peer in self._links or peer in self._dials or self._closing:
            return
        dial = _Dial(asyncio.get_running_loop().create_future())
        self._dials[peer] = dial
        dial.task = self._owner.spawn(self._dial(peer, hints, dial), "dial")

    def probe(self, peer: PeerId, hints: tuple[str, ...]) -> None:
        """See whether this peer can be dialled at these addresses."""
        self._owner.spawn(self._probe(peer, hints), "probe")

    def meet(self, meet: Meet) -> None:
        """Learn who holds a key of a local network."""
        self._local.learn(meet.lan, meet.network)
        self._owner.spawn(self._meet(meet), "meet")

    def serve(self, listener: Listener) -> None:
        """Take links that others open here."""
        self._listeners.append(listener)
        take = partial(self._accepted, listener)
        listener.start(self._config.backlog, take, self._not_accepted)

    def retire(self, listener: Listener) -> None:
        """Take no more links here."""
        self._listeners.remove(listener)
        listener.close()

    def stop_serving(self) -> None:
        """Take no more links; afterwards the listeners can be closed."""
        for listener in self._listeners:
            listener.stop()

    def ended(self, link: Link, reason: Reason) -> None:
        """A link is over for the machine; it may still be sending its last words."""
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
            self._owner.record(Record(Kind.LINK_DOWN, peer=link.peer, reason=reason))
            self._owner.put(LinkDown(link.peer, reason))
        if not link.channel.lost.done():
            self._ending[link] = None
            link.channel.lost.add_done_callback(lambda _: self._ending.pop(link, None))

    async def hang_up_all(self, reason: Reason) -> None:
        """Close every link in good order, and return when all are closed. None comes up any more."""
        self._closing = True
        for link in self.links:
            link.hang_up(reason)
        rest = [link.channel.lost for link in self._ending]
        if rest:
            await asyncio.wait(rest, timeout=self._config.linger)
        for link in list(self._ending):
            link.abort()

    async def _dial(self, peer: PeerId, hints: Iterable[str], dial: _Dial) -> None:
        try:
            async with self._slots:
                channel, hello = await self._open(peer, hints)
        except LinkFailure as failure:
            self._end_dial(peer, dial)
            note = f"dial: {failure.detail}"[:200]
            self._owner.record(Record(Kind.CONTROL, peer=peer, reason=failure.reason, note=note))
            self._owner.put(DialFailed(peer, failure.reason))
        else:
            self._up(peer, hello, True, channel)
        finally:
            self._end_dial(peer, dial)

    def _end_dial(self, peer: PeerId, dial: _Dial) -> None:
        if self._dials.get(peer) is dial:
            del self._dials[peer]
        if not dial.ended.done():
            dial.ended.set_result(None)

    async def _open(self, peer: PeerId, hints: Iterable[str]) -> tuple[Channel, Hello]:
        if peer == self._own:
            raise LinkFailure(Reason.WRONG_KEY, "this is our own key")
        channel = await reach(peer, self._local.dialable(hints), self._context, self._config)
        hello = self._owner.hello
        async with self._greeting(channel):
            if not channel.lan:
                await authenticate(channel, self._key, peer, hello)
            elif await self._introduce(channel) != peer:
                refuse(channel, Reason.WRONG_KEY)
                raise LinkFailure(Reason.WRONG_KEY, "another device holds this key of a local network")
            else:
                say_client_hello(channel, hello)
            theirs = await await_hello(channel, hello)
        return channel, theirs

    @asynccontextmanager
    async def _greeting(self, channel: Channel) -> AsyncIterator[None]:
        """A greeting takes so long at most, and leaves no open channel behind if it fails."""
        try:
            async with asyncio.timeout(self._config.dial_timeout):
                yield
        except TimeoutError as error:
            channel.abort()
            raise LinkFailure(Reason.DIAL_TIMEOUT, "the peer did not finish the greeting") from error
        except BaseException:
            channel.close()
            raise

    async def _introduce(self, channel: Channel) -> PeerId:
        """The device behind the key of a local network that a channel was opened to; both ends are told."""
        own = self._local.own_for(channel.lan)
        if own is None:
            raise LinkFailure(Reason.NO_ADDRESS, "we are on this local network no longer")
        peer = await introduce(channel, self._key, own.key)
        self._owner.put(Met(own.network, channel.lan, peer))
        return peer

    async def _meet(self, meet: Meet) -> None:
        try:
            async with self._slots:
                hints = self._local.dialable(meet.hints)
                channel = await reach(PeerId(meet.lan), hints, self._context, self._config)
                async with self._greeting(channel):
                    peer = await self._introduce(channel)
        except LinkFailure as failure:
            self._owner.put(NotMet(meet.network, meet.lan, failure.reason))
            return
        await self._link_met(peer, channel)

    async def _link_met(self, peer: PeerId, channel: Channel) -> None:
        """Let the channel on which a device was met become a link, unless there is one."""
        if peer in self._links or peer in self._dials or self._closing:
            refuse(channel, Reason.DUPLICATE_LINK)
            return
        dial = _Dial(asyncio.get_running_loop().create_future(), asyncio.current_task())
        self._dials[peer] = dial
        hello = self._owner.hello
        try:
            async with self._greeting(channel):
                say_client_hello(channel, hello)
                theirs = await await_hello(channel, hello)
        except LinkFailure as failure:
            note = f"after meeting: {failure.detail}"[:200]
            self._owner.record(Record(Kind.CONTROL, peer=peer, reason=failure.reason, note=note))
        else:
            self._up(peer, theirs, True, channel)
        finally:
            self._end_dial(peer, dial)

    async def _probe(self, peer: PeerId, hints: Iterable[str]) -> None:
        reason: Reason | None = None
        try:
            async with self._slots:
                channel = await reach(peer, self._local.dialable(hints), self._context, self._config)
            channel.close()
        except LinkFailure as failure:
            reason = failure.reason
        self._owner.put(Probed(peer, reason))

    def _accepted(self, listener: Listener, accepted: socket.socket, origin: str) -> None:
        if self._strangers >= self._config.max_handshakes:
            accepted.close()
            self._reject(Reason.TOO_MANY_LINKS, f"{origin}: {self._strangers} others are being served")
            return
        self._strangers += 1
        task = self._owner.spawn(self._welcome(listener, accepted, origin), f"welcome {origin}")
        # A task that is cancelled before its first step never gets to close anything.
        task.add_done_callback(lambda done: accepted.close() if done.cancelled() else None)

    def _not_accepted(self, error: OSError) -> None:
        self._reject(Reason.TOO_MANY_LINKS, f"accept: {error}")

    async def _welcome(self, listener: Listener, accepted: socket.socket, origin: str) -> None:
        channel: Channel | None = None
        guest: Guest | None = None
        try:
            async with asyncio.timeout(self._config.handshake_timeout):
                channel = await listener.encrypt(accepted, self._config)
                guest = await self._receive(listener, channel)
            await self._admit(guest.peer, channel)
            say_hello(channel, self._owner.hello)
        except (TimeoutError, LinkFailure) as failure:
            if channel is not None:
                channel.abort() if isinstance(failure, TimeoutError) else channel.close()
            self._turned_away(failure, origin, guest)
        except BaseException:
            if channel is not None:
                channel.abort()
            raise
        else:
            self._up(guest.peer, guest.hello, False, channel)
        finally:
            self._strangers -= 1

    async def _receive(self, listener: Listener, channel: Channel) -> Guest:
        if listener.address.scheme is not Scheme.LAN:
            return await receive_guest(channel, self._key, self._owner.hello)
        own = self._local.shown(channel)
        if own is None:
            raise LinkFailure(Reason.WRONG_KEY, "we are called so no longer")
        guest = await receive_local_guest(channel, self._key, own.key)
        self._local.learn(guest.lan, own.network)
        self._owner.put(Met(own.network, guest.lan, guest.peer))
        return Guest(guest.peer, await await_client_hello(channel, self._owner.hello))

    async def _admit(self, peer: PeerId, channel: Channel) -> None:
        """Return when a link that this peer dialled may come up; refuse it with `LinkFailure` otherwise."""
        dial = self._dials.get(peer)
        if dial is not None:
            if self._own < peer and await self._wait(peer, channel, dial.ended) and peer in self._links:
                refuse(channel, Reason.DUPLICATE_LINK)
                raise LinkFailure(Reason.DUPLICATE_LINK, "our own dial was first")
            if dial.task is not None:
                dial.task.cancel()
            self._end_dial(peer, dial)
        link = self._links.get(peer)
        if link is not None and link.dialed:
            await self._wait(peer, channel, link.channel.lost)

    async def _wait(self, peer: PeerId, channel: Channel, event: asyncio.Future[None]) -> bool:
        """Keep a dial of this peer waiting for an event; whether that came in time.

        `LinkFailure` if the peer withdraws it, or dials once more.
        """
        earlier = self._waiting.get(peer)
        if earlier is not None:
            refuse(earlier, Reason.DUPLICATE_LINK)
        self._waiting[peer] = channel
        try:
            await asyncio.wait(
                (channel.lost, event),
                timeout=self._config.hold_timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            if self._waiting.get(peer) is channel:
                del self._waiting[peer]
        if not channel.is_open:
            raise LinkFailure(Reason.REMOTE_CLOSED, "the peer withdrew its dial")
        return event.done()

    def _up(self, peer: PeerId, hello: Hello, dialed: bool, channel: Channel) -> None:
        if self._closing:
            channel.abort()
            return
        former = self._links.get(peer)
        if former is not None:
            former.hang_up(Reason.DUPLICATE_LINK)
        link = Link(peer, hello, dialed, channel, self._owner, self._config)
        self._links[peer] = link
        self._owner.record(Record(Kind.LINK_UP, peer=peer))
        self._owner.put(LinkUp(peer, hello, dialed))
        link.start()

    def _turned_away(self, failure: Exception, origin: str, guest: Guest | None) -> None:
        if isinstance(failure, LinkFailure):
            # Whoever leaves without a word wanted to see whether we are here: a probe is no attack.
            if failure.reason is not Reason.REMOTE_CLOSED:
                self._reject(failure.reason, f"{origin}: {failure.detail}", guest)
        else:
            self._reject(Reason.TIMEOUT, f"{origin}: no link within the time for it", guest)

    def _reject(self, reason: Reason, note: str, guest: Guest | None = None) -> None:
        peer = None if guest is None else guest.peer
        self._owner.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note[:200]))
