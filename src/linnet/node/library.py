"""A node inside a program.

::

    async with Node() as node:
        await node.publish("weather", b"rain")

Without a home the node has a new identity and keeps nothing on disk. With one it is the device of that home,
which is created if need be, and locks it: a second node in the same home is refused. A program beside a node
that runs there already, as ``linnet up`` runs one, uses `Node.attach`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from random import Random, SystemRandom
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import msgspec
from msgspec.structs import replace

from linnet.api.content import ReadContent
from linnet.api.node_commands import ReadHistory
from linnet.api.operations import OPERATIONS, offered_by
from linnet.api.places import ListenToPlace, ReadBody, ReadPlaceHistory
from linnet.content.commands import GroupAt
from linnet.core.effects import Deliver
from linnet.core.errors import BadText, LinnetError
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.delivery.context import kept_card
from linnet.delivery.items import Ended
from linnet.event.signing import is_sound
from linnet.identity.addresses import contact_text
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Command, answer_to
from linnet.machine.protocol import Protocol
from linnet.net.clock import Clock
from linnet.net.config import NetConfig
from linnet.net.failure import DriverStopped
from linnet.node.answers import answers_of
from linnet.node.background import Background
from linnet.node.batching import Batching
from linnet.node.config import NodeConfig, chosen_peers, lan_config, peer_config
from linnet.node.config_problems import check_start
from linnet.node.content import ContentAnswers
from linnet.node.descriptors import fit_to_limit
from linnet.node.devices import DeviceAnswers
from linnet.node.facade import NodeFacade
from linnet.node.home import Home, held, home_path, init, new_card, open_home
from linnet.node.names import NameAnswers
from linnet.node.people import People, RoomAnswers
from linnet.node.place_messages import PlaceItems
from linnet.node.places import PlaceAnswers
from linnet.node.ports import KeptPorts
from linnet.node.reports import Reports
from linnet.node.rooms import Bodies, as_bodies
from linnet.node.subscription import Reader, Subscription
from linnet.peer.config import Identity, PeerConfig, Surroundings
from linnet.peer.interface import Examine, Handed, NodeMachine, NodeStatus, Start, Stop
from linnet.peer.messages import vocabulary_with
from linnet.places.commands import WatchPlace
from linnet.rooms.commands import AskRelay, ReadRoom, RelayReplies, RelayReport
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.store.sqlite import SqliteStore
from linnet.streams.commands import Published, Subscribe
from linnet.streams.stream_names import check_typed
from linnet.trace.jsonlines import JsonTrace
from linnet.trace.records import Kind, NullTrace, Record, TraceSink

if TYPE_CHECKING:
    from linnet.api.server import Source

    # It needs an HTTP client, which costs a tenth of a second: only those who attach pay for it.
    from linnet.net.transport import Transport, TransportListener
    from linnet.node.attached import AttachedNode

STOP_LIMIT = 5.0
"""Seconds that a node has to leave its streams in good order; after that its links are cut."""

FLUSH_PERIOD = 1.0
"""The most seconds that a row of the trace waits in memory."""

R = TypeVar("R")
MachineFactory = Callable[[PeerConfig, Identity, Store, Random], NodeMachine]
TransportFactory = Callable[[SigningKey, NetConfig], "Sequence[Transport]"]


class Node(NodeFacade):
    """A running node, inside ``async with``. All of it belongs to one event loop."""

    def __init__(
        self,
        home: Path | str | None = None,
        config: NodeConfig | None = None,
        trace: TraceSink | None = None,
        machine: MachineFactory | None = None,
        transports: TransportFactory | None = None,
        protocols: Sequence[Protocol[Surroundings]] = (),
    ) -> None:
        """With a home, `config` replaces its ``linnet.toml``; a new home is made with it.

        `transports` makes the transports to dial and listen with, instead of TLS and pipes within this
        process. `protocols` are added to those that ship (docs/design/add-a-protocol.md).
        """
        self._home_path = None if home is None else Path(home)
        self._given_config = config
        self._given_trace = trace
        self._make_machine = machine
        self._make_transports = transports
        self._protocols = tuple(protocols)
        self.operations = (*OPERATIONS, *offered_by(self._protocols))
        """The operations of this node's control API."""
        self._subscriptions: dict[int, Reader[Any, Any]] = {}
        self._is_open = False
        self.trace_file: JsonTrace | None = None
        """The trace of a node with a home."""
        self.clock = Clock()
        """The node's clock."""

    async def __aenter__(self) -> Self:
        # What runs a node is imported when one runs: a program that imports this may do so later, or never.
        from linnet.net.driver import Driver, default_transports

        async with contextlib.AsyncExitStack() as stack:
            self.home = home = self._read_home(stack)
            store = self._open_store(home)
            stack.callback(store.close)
            self.store = store
            self._trace = trace = self._open_trace(stack, home)
            self.ports = KeptPorts(None if home is None else home.ports)
            make = self._make_transports or default_transports
            transports = make(self.identity.device, self.config.net)
            listeners = self.ports.listen(self.config.listens, transports)
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
                    transports,
                    listeners,
                    self.config.net,
                    self._delivered,
                    self.clock,
                    vocabulary_with(self._protocols),
                    lan=lan_config(self.config),
                    chosen=chosen_peers(self.config),
                )
            )
            self._background = await stack.enter_async_context(Background())
            self._batching = Batching(self._ask_machine, self._background.spawn)
            self._make_facade(self._ask_machine, self._background.spawn, self._register)
            self.people = People(self.author, store, self.ask, self.rooms, self.label_of, self.clock.now)
            machine_ask = self._ask_machine
            self._answers = answers_of(
                Reports(self, machine_ask),
                NameAnswers(self.author, self.contact, machine_ask),
                ContentAnswers(self.content),
                PlaceAnswers(lambda: self.contact, machine_ask),
                DeviceAnswers(self.identity.card, store.cells, machine_ask, self.rooms),
                RoomAnswers(self.author, self.people, self.label_of, self.clock.now, machine_ask),
            )
            if self.trace_file is not None:
                self._background.spawn(_flush(self.trace_file), "flush the trace")
            stack.push_async_callback(self._leave)
            await self._ask_machine(Start())
            self._is_open = True
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        await self._stack.__aexit__(kind, error, trace)

    @staticmethod
    def attach(
        home: Path | str | None = None, protocols: Sequence[Protocol[Surroundings]] = ()
    ) -> AttachedNode:
        """Return the node that runs in this home in another process, for ``async with``, with the same calls.

        Without a home, uses ``LINNET_HOME`` or ``~/.linnet``. Entering raises `NodeUnreachable` if no node
        answers there. `protocols` are those that the node's program has added to it.
        """
        from linnet.node.attached import AttachedNode

        return AttachedNode(home, protocols)

    @property
    def peer(self) -> PeerId:
        """The device key of this node, by which others dial it."""
        return self.identity.peer

    @property
    def author(self) -> AuthorId:
        """The person who signs what this node publishes."""
        return self.identity.author

    @property
    def contact(self) -> Contact:
        """This node's key and the addresses at which it may be dialled."""
        return Contact(self.identity.peer, self.listens)

    @property
    def address(self) -> str:
        """The contact as users type it, ``KEY@tls://HOST:PORT``."""
        return contact_text(self.contact)

    async def publish(self, stream: str, bodies: Bodies, confirm: float = 0.0) -> Published:
        """Publish a body or several, in this order, and return the outcome.

        They are durable here when this returns. With `confirm`, waits up to this many seconds for storage
        nodes to confirm that they keep them, but not if there are none; `Published.unconfirmed` tells. If it
        raises `Refused`, nothing was published; if it raises `StoreError`, the store cannot be written and
        the node has ended.
        """
        self._check_open()
        check_typed(stream)
        try:
            return await self._batching.publish(stream, as_bodies(bodies), confirm)
        except asyncio.CancelledError:
            self._driver.raise_store_failure()
            raise

    def open(self, command: Command[Any]) -> Source[Any]:
        """Return the subscription that a command asks for, under a new number."""
        match command:
            case Subscribe():
                check_typed(command.stream)
                return Subscription(replace(command, subscription=self._numbered()), *self._reading)
            case ReadHistory():
                return self.subscribe(command.stream, command.since, ordered=command.ordered, live=False)
            case ReadRoom():
                return Subscription(replace(command, subscription=self._numbered()), *self._reading)
            case WatchPlace():
                return PlaceItems(replace(command, subscription=self._numbered()), *self._reading)
            case ListenToPlace():
                place = self.places.by_id(command.place)
                return place.listen(
                    *(command.methods or ()),
                    since=command.since,
                    name=command.name,
                    largest=command.largest,
                    objects=command.objects,
                )
            case ReadPlaceHistory():
                place = self.places.by_id(command.place)
                return place.history(command.first, command.last, command.largest)
            case ReadBody():
                return self.places.by_id(command.place).body(command.message, command.offset)
            case ReadContent():
                if command.group is not None and command.at is None:
                    raise BadText("a group is at an address: give at as well")
                at = None if command.at is None else GroupAt(command.at, command.group or command.predicate)
                return self.content.subscribe(command.predicate, command.name, command.via, at)
            case _:
                return self.read(command)

    async def relay_report(self) -> RelayReport:
        """Return all that this node knows as a relay, for each room and person."""
        return await self.rooms.relay_report()

    async def ask_relay(self, question: AskRelay) -> RelayReplies:
        """Return this node's answer as a relay to a device that asks by other means than a link."""
        return await self.ask(question)

    def note(self, record: Record) -> None:
        """Record in the trace what happened outside the machine."""
        self._trace.write(self.peer, record, self.clock.now())

    def note_ports(self) -> None:
        """Record in the trace which ports have changed since the last start, once each."""
        for text in self.ports.untold():
            self.note(Record(Kind.CONTROL, reason=Reason.IN_USE, note=text))

    def label_of(self, person: AuthorId, device: DeviceId) -> str:
        """Return the label on a device's card; empty if no card of it is kept here."""
        own = self.identity.card
        is_own = (person, device) == (own.person, own.device)
        card = own if is_own else kept_card(self.store.cells, person, device)
        return "" if card is None else card.label

    async def status(self) -> NodeStatus:
        """Return the state of the node."""
        return await self._ask_machine(Examine())

    def _read_home(self, stack: contextlib.ExitStack | contextlib.AsyncExitStack) -> Home | None:
        """Set our identity and configuration, from the home or new; return the home."""
        if self._home_path is None:
            self.config = fit_to_limit(NodeConfig() if self._given_config is None else self._given_config)
            check_start(self.config)
            self.identity = _new_identity(self.clock.now(), self.config.node.label)
            return None
        path = home_path(self._home_path)
        if not path.exists():
            init(path, self.clock.now(), self._given_config)
        opened = open_home(path, self.clock.now())
        stack.enter_context(held(opened.home))
        self.config = fit_to_limit(opened.config if self._given_config is None else self._given_config)
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

    def _machine(self, store: Store, listeners: list[TransportListener]) -> NodeMachine:
        bound = tuple(listener.hint for listener in listeners)
        told = peer_config(self.config, self.identity.peer, bound, f"linnet {version('linnet')}")
        self.listens = told.listens
        told = msgspec.structs.replace(told, protocols=self._protocols)
        if self._make_machine is not None:
            return self._make_machine(told, self.identity, store, SystemRandom())
        from linnet.peer.peer import Peer

        return Peer(told, self.identity, store, SystemRandom())

    def end_subscriptions(self) -> None:
        """Tell all readers that the node stops."""
        for subscription in list(self._subscriptions.values()):
            subscription.deliver((Ended(Reason.SHUTDOWN),))

    async def _leave(self) -> None:
        """Tell readers and peers that this node leaves; cut those that take too long."""
        self.end_subscriptions()
        with contextlib.suppress(TimeoutError, LinnetError):
            async with asyncio.timeout(STOP_LIMIT):
                await self._ask_machine(Stop())

    async def ask(self, command: Command[R]) -> R:
        """Give a command to this node and return its answer; raises `Refused` if it is declined."""
        self._check_open()
        answer = self._answers.get(type(command))
        if answer is None:
            return await self._ask_machine(command)
        return cast("R", await answer(command))

    async def _ask_machine(self, command: Command[R]) -> R:
        return answer_to(command, await self._driver.ask(command))

    def _check_open(self) -> None:
        if not self._is_open:
            raise DriverStopped("the node is not running: use it inside `async with`")

    def _register(self, subscription: Reader[Any, Any], is_open: bool) -> None:
        if is_open:
            self._subscriptions[subscription.number] = subscription
        else:
            self._subscriptions.pop(subscription.number, None)

    def _delivered(self, effect: Deliver[Handed]) -> None:
        subscription = self._subscriptions.get(effect.subscription)
        if subscription is not None:
            # The machine answers each command with the right type of items.
            subscription.deliver(effect.items)


async def _flush(trace: JsonTrace) -> None:
    """Flush the trace periodically, also when no new rows push the old ones out."""
    while True:
        await asyncio.sleep(FLUSH_PERIOD)
        trace.flush()


def _new_identity(now: float, label: str) -> Identity:
    person = SigningKey.generate(secrets.token_bytes)
    device = SigningKey.generate(secrets.token_bytes)
    return Identity(device, new_card(person, device.public, now, label))
