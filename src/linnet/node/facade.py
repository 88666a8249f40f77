"""The calls of a node for a program, whether the node runs in this process or in another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from linnet.api.node_commands import AllowOnLan
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.delivery.items import Item
from linnet.edge.commands import EdgeStatus, ExamineEdge, ExamineLan, LanStatus, NetworkStatus, Sleep, Wake
from linnet.identity.addresses import parse_contact
from linnet.machine.commands import Ask, Command
from linnet.node.background import Spawn
from linnet.node.content import ContentItems, NodeContent
from linnet.node.devices import Devices
from linnet.node.names import NodeNames
from linnet.node.place_messages import PlaceItems
from linnet.node.places import Places
from linnet.node.rooms import Bodies, Room, Rooms, as_bodies
from linnet.node.subscription import Opened, Reader, Subscription
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.commands import (
    ExamineOverlay,
    ExaminePrivacy,
    ListTrust,
    SetTrust,
    TrackerlessStatus,
    TrustIs,
)
from linnet.overlay.gossip.privacy_budget import BudgetIs
from linnet.peer.interface import Block, Connect, Disconnect
from linnet.rooms.event_types import JoinRule, Newcomers
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    CheckStorage,
    Declare,
    DisallowReader,
    ListReaders,
    OverlayIs,
    Policy,
    Publish,
    Published,
    ReadersAre,
    RequestIs,
    StorageChecked,
    Subscribe,
    SwitchOverlay,
)
from linnet.streams.stream_names import check_typed

R = TypeVar("R")
S = TypeVar("S", bound=Opened)


class NodeFacade(ABC):
    """The calls of a node. Each raises `Refused` with the reason if the node declines."""

    rooms: Rooms
    places: Places
    content: NodeContent
    sealed: SealedStreams
    lan: Lan
    edge: NodeEdge
    overlay: NodeOverlay
    names: NodeNames
    devices: Devices

    def _make_facade(
        self,
        ask_reading: Ask,
        spawn: Spawn,
        register: Callable[[Reader[Any, Any], bool], None],
    ) -> None:
        """`ask_reading` carries the commands of subscriptions; `register` is told when one opens or ends."""
        reading = (ask_reading, spawn, register)
        self._last_number = 0
        self._reading = reading
        self.rooms = Rooms(self.ask, lambda made: Subscription(made(self._numbered()), *reading))
        self.places = Places(self.ask, lambda made: PlaceItems(made(self._numbered()), *reading))
        self.content = NodeContent(self.ask, lambda made: ContentItems(made(self._numbered()), *reading))
        self.sealed = SealedStreams(self.ask)
        self.lan = Lan(self.ask)
        self.edge = NodeEdge(self.ask)
        self.overlay = NodeOverlay(self.ask)
        self.names = NodeNames(self.ask)
        self.devices = Devices(self.ask)

    @abstractmethod
    async def ask(self, command: Command[R]) -> R:
        """Give a command to the node and return its answer; raises `Refused` if it is declined."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise an error if the node cannot be asked."""

    def _numbered(self) -> int:
        """Return the number for a new subscription."""
        self._check_open()
        self._last_number += 1
        return self._last_number

    async def publish(self, stream: str, bodies: Bodies, confirm: float = 0.0) -> Published:
        """Publish a body or several, in this order, and return the outcome.

        They are durable at the node when this returns. With `confirm`, waits up to this many seconds for
        storage nodes to confirm that they keep them, but not if there are none; `Published.unconfirmed`
        tells. If it raises `Refused`, nothing was published.
        """
        check_typed(stream)
        return await self.ask(Publish(stream, as_bodies(bodies), confirm))

    async def check_storage(self, stream: str) -> StorageChecked:
        """Have the storage nodes of a stream show what they have confirmed of this device's events.

        Each has eight seconds to answer. One that is proved to have signed what is not true counts no more.
        """
        check_typed(stream)
        return await self.ask(CheckStorage(stream))

    def subscribe(
        self,
        stream: str,
        since: float | None = None,
        name: str | None = None,
        ordered: bool = True,
        live: bool = True,
        receipts: bool = False,
    ) -> Subscription:
        """Subscribe to a stream; read the events by ``async for``.

        `since` is a Unix time from which on history is wanted, 0 for all of it. A `name` makes the
        subscription durable: it resumes after the last event that was handled. Without `live` it ends with
        the history.
        """
        check_typed(stream)
        number = self._numbered()
        command = Subscribe(number, stream, since, name, ordered, live, receipts)
        return Subscription(command, *self._reading)

    def read(self, command: Command[S]) -> Reader[Item, S]:
        """Return the subscription that a command of an added protocol opens; the node gives it its number."""
        if "subscription" not in command.__struct_fields__:
            raise TypeError(f"{type(command).__name__} opens no subscription")
        number = self._numbered()
        return Reader(number, replace(command, subscription=number), *self._reading)

    def history(self, stream: str, since: float = 0.0) -> Subscription:
        """Read what is kept of a stream since a time, here and at storage nodes; ends with the history."""
        return self.subscribe(stream, since, live=False)

    async def create_room(
        self,
        name: str | None = None,
        topic: str | None = None,
        rule: JoinRule = JoinRule.INVITE,
        creators: tuple[AuthorId, ...] = (),
        newcomers: Newcomers = Newcomers.FROM_NOW,
    ) -> Room:
        """Create a room with us as a creator: our power in it is infinite.

        It is encrypted unless everyone may join; `newcomers` says what later members may read.
        """
        return await self.rooms.create(name, topic, rule, creators, newcomers)

    async def join_room(
        self,
        where: str | TopicId,
        contacts: tuple[Contact | str, ...] = (),
        patience: float = 20.0,
        knock: bool = False,
    ) -> Room:
        """Join a room by the text of an invitation, or by its id with contacts to ask.

        Waits at most `patience` seconds. Raises `BadText` if the invitation is wrong, `Refused` if the room
        does not let us in.
        """
        return await self.rooms.join(where, contacts, patience, knock)

    async def room(self, which: str | TopicId) -> Room:
        """Return a room that we are in, by its id, an unambiguous beginning of it, or its name."""
        return await self.rooms.find(which)

    async def connect(self, contact: Contact | str) -> None:
        """Keep a link to this peer, ``KEY@HOST:PORT``, until `disconnect`."""
        await self.ask(Connect(parse_contact(contact) if isinstance(contact, str) else contact))

    async def disconnect(self, peer: PeerId) -> None:
        """Release a link that `connect` asked for."""
        await self.ask(Disconnect(peer))

    async def block(self, peer: PeerId, blocked: bool = True) -> None:
        """Block a device, or unblock it."""
        await self.ask(Block(peer, blocked))

    async def declare(self, stream: str, policy: Policy, sealed: bool = False) -> Published:
        """Publish the policy of our stream: who may publish, and how it is linked.

        A `sealed` stream can be read only by devices that this one lets in (`sealed.allow`), and stays
        sealed.
        """
        return await self.ask(Declare(stream, policy, sealed))


class NodeEdge:
    """The edge at one node. Each call raises `Refused` with the reason if the node declines."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def status(self) -> EdgeStatus:
        """Return our proxies, and the clients that this node serves."""
        return await self._ask(ExamineEdge())

    async def sleep(self) -> None:
        """Close all links until `wake`; events wait at the proxies meanwhile."""
        await self._ask(Sleep())

    async def wake(self) -> None:
        """Connect to the proxies again."""
        await self._ask(Wake())


class Lan:
    """The local networks of one node. Each call raises `Refused` with the reason if the node declines."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def status(self) -> LanStatus:
        """Return the networks that this device is on, or on which a topic is allowed."""
        return await self._ask(ExamineLan())

    async def allow(self, topic: TopicId, network: bytes | None, is_allowed: bool) -> NetworkStatus:
        """Allow or deny a topic on a network; None: the only network that this device is on."""
        return await self._ask(AllowOnLan(topic, is_allowed, network))


class NodeOverlay:
    """How one node finds others. Each call raises `Refused` with the reason if the node declines."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def status(self) -> TrackerlessStatus:
        """Return the nodes that this one knows, and the state of each of its topics without a tracker."""
        return await self._ask(ExamineOverlay())

    async def privacy(self) -> BudgetIs:
        """Report what the node has told others of its interests, and what that adds up to."""
        return await self._ask(ExaminePrivacy())

    async def trust(self, device: PeerId, value: float = 1.0) -> TrustIs:
        """Set the trust in a device, above 0 and up to 1. Nobody is told."""
        return await self._ask(SetTrust(device, value))

    async def distrust(self, device: PeerId) -> TrustIs:
        """Remove the trust in a device."""
        return await self._ask(SetTrust(device, None))

    async def trusted(self) -> TrustIs:
        """List the devices that the user trusts."""
        return await self._ask(ListTrust())

    async def switch(self, stream: str, overlay: Overlay | None) -> OverlayIs:
        """Switch a stream to another overlay while it goes on; None: the configured one.

        The stream stays in the old overlay for a while, so nothing is lost if the others switch too. The
        choice is kept over restarts.
        """
        return await self._ask(SwitchOverlay(stream, overlay))


class SealedStreams:
    """The sealed streams of one node. Each call raises `Refused` with the reason if the node declines."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def request(self, stream: str) -> RequestIs:
        """Make a line by which this device asks to read a stream. It replaces earlier unanswered ones."""
        return await self._ask(AskToRead(stream))

    async def allow(self, stream: str, line: str, from_now: bool = False) -> ReadersAre:
        """Let in the device that made a line. With `from_now` it cannot read earlier events."""
        return await self._ask(AllowReader(stream, line, from_now))

    async def disallow(
        self, stream: str, person: AuthorId | None = None, device: DeviceId | None = None
    ) -> ReadersAre:
        """Remove a person with all devices, or one device; later events are sealed with a new key."""
        return await self._ask(DisallowReader(stream, person, device))

    async def readers(self, stream: str) -> ReadersAre:
        """List the readers of a stream that this device seals."""
        return await self._ask(ListReaders(stream))
