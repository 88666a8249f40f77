"""The edge at a node: its proxies if it is a client, its clients if it is a proxy, and its sleep.

The machines of both sides ask things of streams through notices, so that neither knows the other side.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from linnet.core.effects import Hold
from linnet.core.errors import Refused
from linnet.core.fair_shares import Origins
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Asked, DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.core.timers import Timer
from linnet.delivery.config import DeliveryConfig
from linnet.edge.announcement import CORE, is_lan_hint
from linnet.edge.commands import EdgeStatus, ExamineEdge, Sleep, Wake
from linnet.edge.config import EdgeConfig
from linnet.edge.edge_client import PURPOSE, AnswerDue, EdgeClient, FailoverDue, RetryDue, TakenDue
from linnet.edge.messages import Answer, EdgeMessage, Serve, Served, Taken, Unserve
from linnet.edge.notices import LanChange
from linnet.edge.proxy import Proxy, ReviewDue
from linnet.machine.commands import Done
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_message, on_timer
from linnet.peer.config import PeerConfig
from linnet.peer.links import Links
from linnet.peer.local_networks import LocalNetworks
from linnet.rooms.commands import SendToRoom
from linnet.streams.commands import Publish
from linnet.streams.part import Streams
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind, Record


class SleepDue(Timer, frozen=True):
    """In battery mode, the node was awake for long enough."""


class WakeDue(Timer, frozen=True):
    """In battery mode, the node slept for long enough."""


class SleepSchedule:
    """Decides whether the node is asleep. The caller closes the links and opens them again."""

    def __init__(self, config: EdgeConfig, out: Outbox) -> None:
        self._config = config
        self._out = out
        self.asleep = False
        self._told = False
        """Whether the user told it to sleep: then only a command wakes it."""

    @property
    def is_by_turns(self) -> bool:
        """Whether the node is in battery mode."""
        return self._config.battery

    def start(self) -> None:
        """Start to measure the time awake, in battery mode."""
        if self.is_by_turns:
            self._out.set_timer(self._config.awake, SleepDue())

    def fall_asleep(self, told: bool) -> None:
        """Sleep until a command or, in battery mode, for a while."""
        self.asleep, self._told = True, told or self._told
        if self._told:
            self._out.cancel_timer(SleepDue())
            self._out.cancel_timer(WakeDue())
        else:
            self._out.set_timer(self._config.asleep, WakeDue())

    def wake_up(self) -> None:
        """End the sleep."""
        self.asleep = self._told = False
        self._out.cancel_timer(WakeDue())
        self.start()

    @property
    def is_interruptible(self) -> bool:
        """Whether the node is asleep, but may wake up to send something for the application."""
        return self.asleep and not self._told


_MOST_REFUSED = 1024
"""Peers for which a refused link is remembered; a refusal of others is recorded once more."""
_ALONE = "a node on the edge has links to its proxies and on local networks alone"
_NO_EDGE = "this node has no proxies: only a node on the edge sleeps, see [edge] in its configuration"


class Edge(Part):
    """The client and the proxy side of the edge, as far as this node has them."""

    def __init__(
        self,
        config: PeerConfig,
        store: Store,
        streams: Streams,
        links: Links,
        out: Outbox,
        origins: Origins,
    ) -> None:
        self._out = out
        self._streams = streams
        self._links = links
        self._client = EdgeClient(config.edge, streams.serving, out) if config.edge.proxies else None
        self._proxy: Proxy | None = None
        if config.proxy is not None:
            self._proxy = Proxy(config.proxy, store, streams.serving, topic_of, out, origins)
        self._sleeping = SleepSchedule(config.edge, out)
        self._refused: dict[PeerId, None] = {}
        self.nearby: dict[PeerId, None] = {}
        """Peers on a local network, to which a node on the edge may also have links."""
        self._settled: tuple[tuple[TopicId, ...], tuple[TopicId, ...]] = ((), ())
        if self._client is not None:
            streams.take_part_through(self._client)
            links.reach = self._reach
            links.why_foreign = self._why_foreign

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that make up the edge."""
        return (self, EarlyWaking(self)) if self._sleeping.is_by_turns else (self,)

    @property
    def is_edge(self) -> bool:
        """Whether this node has links only to its proxies and on local networks."""
        return self._client is not None

    def start(self, now: float) -> None:
        """Begin to use our proxies, and go on serving our clients."""
        if self._client is not None:
            self._client.start()
            self._sleeping.start()
        if self._proxy is not None:
            self._proxy.start()

    def stop(self, now: float) -> None:
        """Tell the proxies what has arrived; must be called before streams are left."""
        if self._client is not None:
            self._client.stop()

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Note that a link is open, perhaps to a proxy."""
        if self._client is not None:
            self._client.handle_link_up(event.peer, is_fit="edge" in event.hello.protocols)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Note that a link is gone, perhaps to a proxy or a client."""
        if self._client is not None:
            self._client.handle_link_down(event.peer, event.reason)
        if self._proxy is not None:
            self._proxy.handle_link_down(event.peer, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Note that a peer, perhaps a proxy, could not be dialled."""
        if self._client is not None:
            self._client.handle_dial_failed(event.peer, event.reason)

    # Messages.

    @on_message(Serve)
    def handle_serve(self, peer: PeerId, message: Serve, now: float) -> None:
        """Serve a client, or answer that this node is no proxy."""
        if self._proxy is not None:
            self._proxy.handle_serve(peer, message, now)
            return
        self._reject(peer, Reason.NOT_RESPONSIBLE, message)
        answers = (Answer(Reason.NOT_RESPONSIBLE, False),) * len(message.streams)
        self._out.send(peer, Served(message.request, answers, 0, 0, 0))

    @on_message(Unserve)
    def handle_unserve(self, peer: PeerId, message: Unserve, now: float) -> None:
        """Stop serving a client a stream."""
        if self._proxy is None:
            self._reject(peer, Reason.NOT_RESPONSIBLE, message)
        else:
            self._proxy.handle_unserve(peer, message, now)

    @on_message(Taken)
    def handle_taken(self, peer: PeerId, message: Taken, now: float) -> None:
        """Note which events have arrived at a client."""
        if self._proxy is None:
            self._reject(peer, Reason.NOT_RESPONSIBLE, message)
        else:
            self._proxy.handle_taken(peer, message)

    @on_message(Served)
    def handle_served(self, peer: PeerId, message: Served, now: float) -> None:
        """Take in a proxy's answer."""
        if self._client is None:
            self._reject(peer, Reason.STALE, message)
        else:
            self._client.handle_served(peer, message)

    # Time.

    @on_timer(FailoverDue)
    def stand_in(self, timer: FailoverDue, now: float) -> None:
        """Use other proxies in place of those that are missed."""
        # While asleep, no proxy is missed; once awake, we see whether one is.
        if self._client is not None and not self._sleeping.asleep:
            self._client.stand_in()

    @on_timer(AnswerDue)
    def ask_again(self, timer: AnswerDue, now: float) -> None:
        """Ask a proxy again that did not answer in time."""
        if self._client is not None:
            self._client.ask_again(timer.peer)

    @on_timer(RetryDue)
    def ask_refused(self, timer: RetryDue, now: float) -> None:
        """Ask proxies again for the streams that they refused."""
        if self._client is not None:
            self._client.ask_refused()

    @on_timer(TakenDue)
    def compare_streams(self, timer: TakenDue, now: float) -> None:
        """Tell the proxies which events have arrived."""
        if self._client is not None:
            self._client.compare_streams()

    @on_timer(ReviewDue)
    def review_kept(self, timer: ReviewDue, now: float) -> None:
        """Evict events kept for clients that are too old or too many."""
        if self._proxy is not None:
            self._proxy.review_kept(now)

    @on_timer(SleepDue)
    def sleep_by_turns(self, timer: SleepDue, now: float) -> None:
        """Fall asleep, in battery mode, when the time awake is over."""
        if self._client is not None:
            self._fall_asleep(self._client, told=False)

    @on_timer(WakeDue)
    def wake_by_turns(self, timer: WakeDue, now: float) -> None:
        """Wake up, in battery mode, when the time asleep is over."""
        if self._client is not None:
            self._wake_up(self._client, now)

    # Commands.

    @on_command(ExamineEdge)
    def tell_status(self, request: int, command: ExamineEdge, now: float) -> None:
        """Report the state of the edge."""
        self._out.reply(request, self.status())

    @on_command(Sleep)
    def sleep(self, request: int, command: Sleep, now: float) -> None:
        """Close all links until the command to wake up."""
        if self._client is None:
            raise Refused(Reason.NOT_ALLOWED, _NO_EDGE)
        self._fall_asleep(self._client, told=True)
        self._out.reply(request, Done())

    @on_command(Wake)
    def wake(self, request: int, command: Wake, now: float) -> None:
        """Wake up and use the proxies again."""
        if self._client is None:
            raise Refused(Reason.NOT_ALLOWED, _NO_EDGE)
        self._wake_up(self._client, now)
        self._out.reply(request, Done())

    def end_turn(self, now: float) -> None:
        """Wake up early, unless the user told the node to sleep."""
        if self._client is not None and self._sleeping.is_interruptible:
            self._wake_up(self._client, now)

    # The peers to which this node may have links.

    def _why_foreign(self, peer: PeerId) -> str | None:
        """Return why a node on the edge may have no link to a peer that is neither a proxy nor nearby."""
        if self._client is None or peer in self._client.proxies or peer in self.nearby:
            return None
        return f"{_ALONE}: see [edge]"

    def check_hold(self, hold: Hold) -> bool:
        """Return whether a request for a link is granted. On the edge only the client chooses among proxies.

        A refusal is recorded, unless the peer is a proxy: a part that waits for one is nothing unusual.
        """
        if self._client is None or hold.purpose == PURPOSE or hold.peer in self.nearby:
            return True
        if hold.peer in self._client.proxies or hold.peer in self._refused:
            return False
        self._refused[hold.peer] = None
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        note = f"{_ALONE}: {hold.purpose}"
        self._out.record(Record(Kind.REJECTED, peer=hold.peer, reason=Reason.NOT_ALLOWED, note=note))
        return False

    def settle_local(self, changes: Iterable[LanChange], local: LocalNetworks, now: float) -> None:
        """Note changes on our local networks, and settle which topics go over them and not to proxies."""
        if self._client is None:
            return
        for change in changes:
            if local.is_here(change.peer):
                self.nearby[change.peer] = None
                self._refused.pop(change.peer, None)
            else:
                self.nearby.pop(change.peer, None)
        wanted = (local.spoken, local.policy.denied_topics(CORE))
        if wanted != self._settled:
            self._settled = wanted
            self._streams.settle(*wanted, now)

    def is_ours(self, peer: PeerId) -> bool:
        """Return whether a peer is one of our proxies; we speak with them only of streams that they serve."""
        return self._client is not None and peer in self._client.proxies

    def _reach(self, peer: PeerId, hints: tuple[str, ...]) -> tuple[str, ...]:
        """Return the addresses to dial: all for a proxy; for others, local ones while they are there."""
        if self.is_ours(peer):
            return hints
        return tuple(hint for hint in hints if peer in self.nearby and is_lan_hint(hint))

    def status(self) -> EdgeStatus:
        """Describe the state of the edge."""
        proxies = () if self._client is None else self._client.status()
        clients = () if self._proxy is None else self._proxy.status()
        is_proxy = self._proxy is not None
        return EdgeStatus(self.is_edge, is_proxy, self._sleeping.asleep, proxies, clients)

    # The rest.

    def _fall_asleep(self, client: EdgeClient, told: bool) -> None:
        client.tell_taken()
        self._out.record(Record(Kind.CONTROL, note="asleep"))
        self._links.sleep()
        self._sleeping.fall_asleep(told)

    def _wake_up(self, client: EdgeClient, now: float) -> None:
        if not self._sleeping.asleep:
            return
        self._out.record(Record(Kind.CONTROL, note="awake"))
        self._links.wake(now)
        self._sleeping.wake_up()
        client.forgive_proxies()

    def _reject(self, peer: PeerId, reason: Reason, message: EdgeMessage) -> None:
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=type(message).__name__))


class EarlyWaking(Part):
    """In battery mode, wakes the node when the application has something to send."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    @on_input(Asked)
    def wake_for(self, event: Asked[object], now: float) -> None:
        """Wake up if the application publishes or sends a message."""
        if isinstance(event.command, Publish | SendToRoom):
            self._edge.end_turn(now)


def edge_delivery(config: PeerConfig) -> DeliveryConfig:
    """Return the delivery settings: a node that is often offline waits with gaps until it can ask."""
    return replace(config.delivery, gap_waits=True) if config.edge.proxies else config.delivery


def only_links(config: PeerConfig) -> tuple[PeerId, ...] | None:
    """Return the only peers to which this node may have links; None: any."""
    proxies = tuple(contact.peer for contact in config.edge.proxies)
    return proxies or None
