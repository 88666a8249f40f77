"""The reports of a node on itself, put together from its settings and several parts of its machine."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Protocol

from msgspec.structs import replace

from linnet.api.errors import ApiError
from linnet.api.node_commands import (
    AllowOnLan,
    ExamineGraph,
    GraphNode,
    GraphReport,
    GraphRtt,
    HealthReport,
    ListPeers,
    PeersAre,
    ReportHealth,
    ReportStatus,
    StatusReport,
)
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import kept_revocations
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus, NetworkStatus
from linnet.event.times import clock_behind
from linnet.machine.commands import Ask
from linnet.net.clock import Clock
from linnet.node.answers import answers
from linnet.node.config import NodeConfig
from linnet.node.places import Places
from linnet.node.rooms import Bodies, Rooms
from linnet.overlay.gossip.commands import ExamineOverlay, TrackerlessStatus
from linnet.peer.config import Identity
from linnet.peer.interface import Examine, NodeStatus, PeerStatus
from linnet.store.base import CommittingStore
from linnet.streams.commands import Publish, Published
from linnet.trace.jsonlines import JsonTrace

_PURPOSE_LETTERS = 16
"""The least number of letters of a topic in the purpose of a link."""


class Reported(Protocol):
    """The properties of a running node that reports use."""

    identity: Identity
    config: NodeConfig
    clock: Clock
    store: CommittingStore
    trace_file: JsonTrace | None
    rooms: Rooms
    places: Places

    @property
    def address(self) -> str:
        """The contact as users type it."""

    async def publish(self, stream: str, bodies: Bodies, confirm: float = 0.0) -> Published:
        """Publish together with the other publishes of this loop turn."""


class Reports:
    """The answers of one node; `ask` asks its machine."""

    def __init__(self, node: Reported, ask: Ask) -> None:
        self._node = node
        self._ask = ask

    @answers(ReportStatus)
    async def report_status(self, command: ReportStatus) -> StatusReport:
        """Report the state of the node."""
        node, status = self._node, await self._ask(Examine())
        return StatusReport(
            version=version("linnet"),
            device=status.peer,
            person=AuthorId(status.author),
            label=node.identity.card.label,
            contact=node.address,
            started_at=status.started_at,
            now=node.clock.now(),
            roles=status.roles,
            listens=status.listens,
            reachable=status.reachable,
            reachable_reason=status.reachable_reason,
            blocked=status.blocked,
            peers=named_peers(status, topic_names(status)),
            streams=status.streams,
            rooms=status.rooms,
            tracked=tuple(tracked.topic for tracked in status.tracked),
            overlay=node.config.node.overlay,
            hash_table=status.hash_table,
            content=status.content,
            departures=await node.rooms.departures(),
            clock_behind=clock_behind(status.clocks),
        )

    @answers(ListPeers)
    async def list_peers(self, command: ListPeers) -> PeersAre:
        """List every link, with its purposes."""
        status = await self._ask(Examine())
        places = {each.place: each.name for each in await self._node.places.statuses() if each.name}
        return PeersAre(named_peers(status, topic_names(status) | places))

    @answers(ReportHealth)
    async def report_health(self, command: ReportHealth) -> HealthReport:
        """Report what the node knows about its own health."""
        # What walks the steps to a peer is imported when it is asked for: it needs certificates.
        from linnet.node.health import NodeFacts, node_checks, reach_checks

        node, told, ring = self._node, await self._ask(Examine()), await self._ring()
        store, card = node.store, node.identity.card
        lost = 0 if node.trace_file is None else node.trace_file.lost
        facts = NodeFacts(
            told,
            node.config,
            node.clock.offset,
            store.failed,
            lost,
            ring,
            store.damaged,
            store.damaged_cells,
            any(word.device == card.device for word in kept_revocations(store.cells, card.person)),
        )
        places, departures = await node.places.statuses(), await node.rooms.departures()
        reached = reach_checks(facts, places, node.clock.now(), departures)
        return HealthReport((*node_checks(facts), *reached))

    @answers(ExamineGraph)
    async def examine_graph(self, command: ExamineGraph) -> GraphReport:
        """Return the graph of a topic that this node tracks."""
        for graph in (await self._ask(Examine())).tracked:
            if graph.topic == command.topic:
                nodes = tuple(GraphNode(node, near) for node, near in graph.edges)
                rtts = tuple(GraphRtt(*each) for each in graph.rtts)
                return GraphReport(graph.topic, graph.degree, graph.near, nodes, rtts)
        raise ApiError(404, "not_found", "this node does not track that topic")

    @answers(ExamineOverlay)
    async def examine_overlay(self, command: ExamineOverlay) -> TrackerlessStatus:
        """Report the state without trackers, with the names of its topics."""
        status = await self._ask(command)
        names = topic_names(await self._ask(Examine()))
        return replace(
            status, rings=tuple(replace(ring, name=names.get(ring.topic)) for ring in status.rings)
        )

    @answers(Publish)
    async def publish(self, command: Publish) -> Published:
        """Publish together with the other publishes of this loop turn."""
        bodies = (*command.bodies, *(text.encode() for text in command.texts))
        return await self._node.publish(command.stream, bodies, command.confirm)

    @answers(AllowOnLan)
    async def allow_on_lan(self, command: AllowOnLan) -> NetworkStatus:
        """Allow or deny a topic on a network, and return the state of the network."""
        network = command.network
        if network is None:
            network = chosen_network(await self._ask(ExamineLan())).network
        await self._ask(AllowOnNetwork(command.topic, network, command.is_allowed))
        for each in (await self._ask(ExamineLan())).networks:
            if each.network == network:
                return each
        return NetworkStatus(network, "", False, False, (), 0, ())

    async def _ring(self) -> TrackerlessStatus | None:
        """Return the state without trackers; None if this node takes no part in that."""
        try:
            return await self._ask(ExamineOverlay())
        except Refused as error:
            if error.reason is not Reason.UNSUPPORTED:
                raise
            return None


def topic_names(status: NodeStatus) -> dict[TopicId, str]:
    """Return the names of the streams and rooms of a node."""
    streams = {stream.topic: stream.stream for stream in status.streams}
    return streams | {room.room: room.name for room in status.rooms if room.name}


def named_peers(status: NodeStatus, names: Mapping[TopicId, str]) -> tuple[PeerStatus, ...]:
    """Return the links to other nodes: a node that is its own tracker also has one to itself."""
    by_start = {topic.hex()[:_PURPOSE_LETTERS]: name for topic, name in names.items()}
    return tuple(
        replace(peer, needed_for=tuple(_named(purpose, by_start) for purpose in peer.needed))
        for peer in status.peers
        if peer.peer != status.peer
    )


def _named(purpose: str, names: Mapping[str, str]) -> str:
    """Return the purpose of a link, with the name of the stream, room or place instead of its number."""
    *words, topic = purpose.split(" ")
    name = names.get(topic[:_PURPOSE_LETTERS])
    return purpose if name is None else " ".join((*words, name))


def chosen_network(status: LanStatus) -> NetworkStatus:
    """Return the only network that this device is on; raises `Refused` if there are none or several."""
    if not status.is_enabled:
        raise Refused(Reason.UNSUPPORTED, "this node leaves local networks alone: [lan] enabled = false")
    here = [each for each in status.networks if each.is_here]
    if len(here) == 1:
        return here[0]
    if not here:
        raise Refused(Reason.UNREACHABLE, "this device is on no local network now")
    named = "; ".join(f"{each.network.hex()[:8]} ({each.name})" for each in here)
    raise Refused(Reason.TOO_MANY, f"this device is on several networks, say which: {named}")
