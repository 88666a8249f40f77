"""A node inside a program.

::

    async with Node() as node:
        await node.publish("weather", b"rain")

Without a home the node has a new identity and keeps nothing on disk. With one it is the device of
that home, which is made if it is not there, and holds it for itself: a second node in the same home is
refused. A program beside a node that runs there already, as ``linnet up`` does it, uses `Node.attach`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from random import Random, SystemRandom
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from linnet.content.commands import SubscribeContent
from linnet.core.effects import Deliver
from linnet.core.errors import LinnetError
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.delivery.cards import kept_card
from linnet.delivery.commands import Done
from linnet.delivery.items import Ended
from linnet.event.soundness import is_sound
from linnet.identity.keys import SigningKey
from linnet.net.clock import Clock
from linnet.net.failure import DriverStopped
from linnet.node.addresses import contact_text, parse_contact
from linnet.node.answers import expected
from linnet.node.background import Background
from linnet.node.batching import Batching
from linnet.node.config import NodeConfig
from linnet.node.config_problems import check_start
from linnet.node.content import NodeContent
from linnet.node.content_items import ContentItems
from linnet.node.devices import Devices
from linnet.node.edge import NodeEdge
from linnet.node.home import Home, held, home_path, init, new_card, open_home
from linnet.node.lan import Lan
from linnet.node.names import NodeNames
from linnet.node.overlay import NodeOverlay
from linnet.node.peer_settings import lan_config, peer_config
from linnet.node.people import People
from linnet.node.place_items import PlaceItems
from linnet.node.places import Places
from linnet.node.ports import KeptPorts
from linnet.node.reader import Reader
from linnet.node.room import Room
from linnet.node.rooms import Rooms
from linnet.node.sealed_streams import SealedStreams
from linnet.node.subscription import Subscription
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import (
    Block,
    Command,
    Connect,
    Disconnect,
    Examine,
    Handed,
    NodeMachine,
    NodeStatus,
    Result,
    Start,
    Stop,
)
from linnet.places.commands import WatchPlace
from linnet.rooms.commands import AskRelay, ReadRoom
from linnet.rooms.content import JoinRule, Newcomers
from linnet.rooms.results import RelayReplies, RelayReport
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.store.sqlite import SqliteStore
from linnet.streams.commands import Declare, Policy, Published, Subscribe
from linnet.streams.stream_names import check_typed
from linnet.trace.jsonlines import JsonTrace
from linnet.trace.records import Kind, Record
from linnet.trace.sink import NullTrace, TraceSink

if TYPE_CHECKING:
    # It needs an HTTP client, which costs a tenth of a second: only those who attach pay for it.
    from linnet.net.listener import Listener
    from linnet.node.attached import AttachedNode

STOP_LIMIT = 5.0
"""Seconds that a node has to leave its streams in good order; then its links are cut."""

FLUSH_PERIOD = 1.0
"""Seconds that a row of the trace waits in memory at most."""

Bodies = bytes | str | Iterable[bytes | str]
MachineFactory = Callable[[PeerConfig, Identity, Store, Random], NodeMachine]


class Node:
    """A running node, between ``async with`` and its end. All of it belongs to one event loop."""

    def __init__(
        self,
        home: Path | str | None = None,
        config: NodeConfig | None = None,
        trace: TraceSink | None = None,
        machine: MachineFactory | None = None,
    ) -> None:
        """With a home, `config` stands instead of its ``linnet.toml``; a new home is made with it."""
        self._home_path = None if home is None else Path(home)
        self._given_config = config
        self._given_trace = trace
        self._make_machine = machine
        self._subscriptions: dict[int, Reader[Any, Any]] = {}
        self._last_number = 0
        self._is_open = False
        self.trace_file: JsonTrace | None = None
        """The trace of a node with a home."""
        self.clock = Clock()
        """The time that the node goes by."""

    async def __aenter__(self) -> Self:
        # What runs a node is imported when one runs: a program that imports this may do so later, or never.
        from linnet.net.driver import Driver

        async with contextlib.AsyncExitStack() as stack:
            self.home = home = self._read_home(stack)
            store = self._open_store(home)
            stack.callback(store.close)
            self.store = store
            self._trace = trace = self._open_trace(stack, home)
            self.ports = KeptPorts(None if home is None else home.ports)
            listeners = self.ports.listen(self.config.listens, self.identity.device)
            for listener in listeners:
                stack.callback(listener.close)
            self.note_ports()
            machine = self._machine(store, listeners)
            self._driver = await stack.enter_async_context(
                Driver(
                    machine,
                    self.identity.device,
                    store,
                    trace,
                    listeners,
                    self.config.net,
                    self._delivered,
                    self.clock,
                    lan=lan_config(self.config),
                )
            )
            self._background = await stack.enter_async_context(Background())
            self._batching = Batching(self._driver.ask, self._background.spawn)
            self.rooms = Rooms(self.author, self._ask, self._read_room, self.clock.now)
            self.places = Places(lambda: self.contact, self._ask, self._read_place)
            self.content = NodeContent(self._ask, self._read_content)
            self.sealed = SealedStreams(self._ask)
            self.lan = Lan(self._ask)
            self.edge = NodeEdge(self._ask)
            self.overlay = NodeOverlay(self._ask)
            self.names = NodeNames(self.author, self.contact, self._ask)
            self.devices = Devices(self.identity.card, store.cells, self._ask, self.rooms)
            self.people = People(self.author, store, self._ask, self.rooms, self.label_of, self.clock.now)
            if self.trace_file is not None:
                self._background.spawn(_flush(self.trace_file), "flush the trace")
            stack.push_async_callback(self._leave)
            expected(await self._driver.ask(Start()), Done)
            self._is_open = True
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        await self._stack.__aexit__(kind, error, trace)

    @staticmethod
    def attach(home: Path | str | None = None) -> AttachedNode:
        """The node that runs in this home in another process, for ``async with``: the same calls for streams.

        Without a home, that of ``LINNET_HOME`` or ``~/.linnet``. Raises `NodeUnreachable` when it is entered
        and no node answers there.
        """
        from linnet.node.attached import AttachedNode

        return AttachedNode(home)

    @property
    def peer(self) -> PeerId:
        """The device key of this node: what others dial."""
        return self.identity.peer

    @property
    def author(self) -> AuthorId:
        """The person who signs what is published here."""
        return self.identity.author

    @property
    def contact(self) -> Contact:
        """This node and where it may be dialled."""
        return Contact(self.identity.peer, self.listens)

    @property
    def address(self) -> str:
        """The contact as people type it, ``KEY@tls://HOST:PORT``."""
        return contact_text(self.contact)

    async def publish(self, stream: str, bodies: Bodies, confirm: float = 0.0) -> Published:
        """Publish a body or several, in this order, and tell what became of them.

        They are durable here when this returns. With `confirm`, waits so many seconds for storage
        nodes to say that they keep them, and not at all if there are none: `Published.unconfirmed` says
        so. Raises `Refused`, and then nothing was published; `StoreError` if the store cannot be written,
        and then the node has ended.
        """
        if not self._is_open:
            raise DriverStopped("the node is not running: use it inside `async with`")
        check_typed(stream)
        try:
            return await self._batching.publish(stream, _bodies(bodies), confirm)
        except asyncio.CancelledError:
            self._driver.raise_store_failure()
            raise

    def subscribe(
        self,
        stream: str,
        since: float | None = None,
        name: str | None = None,
        ordered: bool = True,
        live: bool = True,
        receipts: bool = False,
    ) -> Subscription:
        """What is said in a stream, to be read by ``async for``.

        `since` is a Unix time from which on history is wanted, 0 for all of it. A `name` makes the
        subscription durable: it resumes after the last event that was handled. Without `live` it
        ends with the history.
        """
        check_typed(stream)
        command = Subscribe(self._numbered(), stream, since, name, ordered, live, receipts)
        return Subscription(command, self._driver.ask, self._background.spawn, self._register)

    def history(self, stream: str, since: float = 0.0) -> Subscription:
        """What is kept of a stream, here and at storage nodes, since a time; it ends with it."""
        return self.subscribe(stream, since, live=False)

    async def create_room(
        self,
        name: str | None = None,
        topic: str | None = None,
        rule: JoinRule = JoinRule.INVITE,
        creators: tuple[AuthorId, ...] = (),
        newcomers: Newcomers = Newcomers.FROM_NOW,
    ) -> Room:
        """Found a room, of which we are a creator: our power in it is infinite.

        It is encrypted unless everyone may join; `newcomers` says what those may read who join later.
        """
        return await self.rooms.create(name, topic, rule, creators, newcomers)

    async def join_room(
        self,
        where: str | TopicId,
        contacts: tuple[Contact | str, ...] = (),
        patience: float = 20.0,
        knock: bool = False,
    ) -> Room:
        """Join a room by the text of an invitation, or by its id with somebody to ask.

        Waits `patience` seconds at most. `BadText` says what is wrong with an invitation, `Refused` why
        the room does not let us in.
        """
        return await self.rooms.join(where, contacts, patience, knock)

    async def room(self, which: str | TopicId) -> Room:
        """A room that we are in, by its id, an unambiguous beginning of it, or its name."""
        return await self.rooms.find(which)

    async def relay_report(self) -> RelayReport:
        """All that this node knows as a relay, of each room and person."""
        return await self.rooms.relay_report()

    async def ask_relay(self, question: AskRelay) -> RelayReplies:
        """What this node answers, as a relay, to a device that asks by another way than a link."""
        return expected(await self._ask(question), RelayReplies)

    def note(self, record: Record) -> None:
        """Write to the trace what happened beside the machine."""
        self._trace.write(self.peer, record, self.clock.now())

    def note_ports(self) -> None:
        """Write to the trace which ports are others than at the last start, once each."""
        for text in self.ports.untold():
            self.note(Record(Kind.CONTROL, reason=Reason.IN_USE, note=text))

    def label_of(self, person: AuthorId, device: DeviceId) -> str:
        """What a device calls itself on its card; empty if no card of it is kept here."""
        own = self.identity.card
        is_own = (person, device) == (own.person, own.device)
        card = own if is_own else kept_card(self.store.cells, person, device)
        return "" if card is None else card.label

    async def status(self) -> NodeStatus:
        """How things stand."""
        return expected(await self._driver.ask(Examine()), NodeStatus)

    async def connect(self, contact: Contact | str) -> None:
        """Keep a link to this peer, ``KEY@HOST:PORT``, until `disconnect`."""
        given = parse_contact(contact) if isinstance(contact, str) else contact
        expected(await self._driver.ask(Connect(given)), Done)

    async def disconnect(self, peer: PeerId) -> None:
        """Let go of a link that `connect` asked for."""
        expected(await self._driver.ask(Disconnect(peer)), Done)

    async def block(self, peer: PeerId, blocked: bool = True) -> None:
        """Have nothing to do with this device any more, or again."""
        expected(await self._driver.ask(Block(peer, blocked)), Done)

    async def declare(self, stream: str, policy: Policy, sealed: bool = False) -> Published:
        """Publish the policy of a stream of ours: who may publish, how it is linked.

        A `sealed` one is read by those alone whom this device lets in (`sealed.allow`), and stays so.
        """
        return expected(await self._driver.ask(Declare(stream, policy, sealed)), Published)

    def _read_home(self, stack: contextlib.ExitStack | contextlib.AsyncExitStack) -> Home | None:
        """Who we are and how we are configured, from the home or new."""
        if self._home_path is None:
            self.config = NodeConfig() if self._given_config is None else self._given_config
            check_start(self.config)
            self.identity = _new_identity(self.clock.now(), self.config.node.label)
            return None
        path = home_path(self._home_path)
        if not path.exists():
            init(path, self.clock.now(), self._given_config)
        opened = open_home(path, self.clock.now())
        stack.enter_context(held(opened.home))
        self.config = opened.config if self._given_config is None else self._given_config
        check_start(self.config)
        self.identity = opened.identity
        return opened.home

    def _open_store(self, home: Home | None) -> CommittingStore:
        return MemoryStore() if home is None else SqliteStore(home.store, is_sound)

    def _open_trace(self, stack: contextlib.AsyncExitStack, home: Home | None) -> TraceSink:
        if self._given_trace is not None:
            return self._given_trace
        if home is None:
            return NullTrace()
        section = self.config.trace
        self.trace_file = JsonTrace(
            home.trace, section.level, section.max_bytes, section.keep, section.flush_seconds
        )
        return stack.enter_context(self.trace_file)

    def _machine(self, store: Store, listeners: list[Listener]) -> NodeMachine:
        bound = tuple(listener.hint for listener in listeners)
        told = peer_config(self.config, self.identity.peer, bound, f"linnet {version('linnet')}")
        self.listens = told.listens
        if self._make_machine is not None:
            return self._make_machine(told, self.identity, store, SystemRandom())
        from linnet.peer.peer import Peer

        return Peer(told, self.identity, store, SystemRandom())

    def end_subscriptions(self) -> None:
        """Tell every reader that the node stops."""
        for subscription in list(self._subscriptions.values()):
            subscription.deliver((Ended(Reason.SHUTDOWN),))

    async def _leave(self) -> None:
        """Tell readers and peers that this node goes; whoever takes too long is cut."""
        self.end_subscriptions()
        with contextlib.suppress(TimeoutError, LinnetError):
            async with asyncio.timeout(STOP_LIMIT):
                await self._driver.ask(Stop())

    async def _ask(self, command: Command) -> Result:
        if not self._is_open:
            raise DriverStopped("the node is not running: use it inside `async with`")
        return await self._driver.ask(command)

    def _numbered(self) -> int:
        """The number of a new subscription."""
        if not self._is_open:
            raise DriverStopped("the node is not running: use it inside `async with`")
        self._last_number += 1
        return self._last_number

    def _read_room(self, command: Callable[[int], ReadRoom]) -> Subscription:
        made = command(self._numbered())
        return Subscription(made, self._driver.ask, self._background.spawn, self._register)

    def _read_place(self, command: Callable[[int], WatchPlace]) -> PlaceItems:
        made = command(self._numbered())
        return PlaceItems(made, self._driver.ask, self._background.spawn, self._register)

    def _read_content(self, command: Callable[[int], SubscribeContent]) -> ContentItems:
        made = command(self._numbered())
        return ContentItems(made, self._driver.ask, self._background.spawn, self._register)

    def _register(self, subscription: Reader[Any, Any], is_open: bool) -> None:
        if is_open:
            self._subscriptions[subscription.number] = subscription
        else:
            self._subscriptions.pop(subscription.number, None)

    def _delivered(self, effect: Deliver[Handed]) -> None:
        subscription = self._subscriptions.get(effect.subscription)
        if subscription is not None:
            # The machine answers each command with items of its own sort.
            subscription.deliver(effect.items)


async def _flush(trace: JsonTrace) -> None:
    """Write rows out also when no others come to push them."""
    while True:
        await asyncio.sleep(FLUSH_PERIOD)
        trace.flush()


def _new_identity(now: float, label: str) -> Identity:
    person = SigningKey.generate(secrets.token_bytes)
    device = SigningKey.generate(secrets.token_bytes)
    return Identity(device, new_card(person, device.public, now, label))


def _bodies(bodies: Bodies) -> tuple[bytes, ...]:
    if isinstance(bodies, bytes | str):
        bodies = (bodies,)
    return tuple(body.encode() if isinstance(body, str) else bytes(body) for body in bodies)
