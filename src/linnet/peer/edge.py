"""The edge at a node: its proxies if it is a client, its clients if it is a proxy, and its sleep.

What the two machines ask of streams they tell as notices, so that neither knows the other's side.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from linnet.core.effects import Hold
from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Asked, DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.delivery.commands import Done
from linnet.delivery.config import DeliveryConfig
from linnet.edge.client import PURPOSE, AnswerDue, EdgeClient, FailoverDue, RetryDue, TakenDue
from linnet.edge.hints import is_lan_hint
from linnet.edge.lan_keys import CORE
from linnet.edge.messages import Answer, EdgeMessage, Serve, Served, Taken, Unserve
from linnet.edge.notices import LanChange
from linnet.edge.proxy import Proxy, ReviewDue
from linnet.edge.proxy_commands import EdgeStatus, ExamineEdge, Sleep, Wake
from linnet.edge.sleeping import SleepDue, Sleeping, WakeDue
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

_MOST_REFUSED = 1024
"""Peers of which it is remembered that a link to them was refused; others are told of once more."""
_ALONE = "a node on the edge has links to its proxies and on local networks alone"
_NO_EDGE = "this node has no proxies: only a node on the edge sleeps, see [edge] in its configuration"


class Edge(Part):
    """Both sides of the edge, as far as this node has them."""

    def __init__(self, config: PeerConfig, store: Store, streams: Streams, links: Links, out: Outbox) -> None:
        self._out = out
        self._streams = streams
        self._links = links
        self._client = EdgeClient(config.edge, streams.serving, out) if config.edge.proxies else None
        self._proxy: Proxy | None = None
        if config.proxy is not None:
            self._proxy = Proxy(config.proxy, store, streams.serving, topic_of, out)
        self._sleeping = Sleeping(config.edge, out)
        self._refused: dict[PeerId, None] = {}
        self.nearby: dict[PeerId, None] = {}
        """Peers on a local network, to whom a node on the edge may have links as well."""
        self._settled: tuple[tuple[TopicId, ...], tuple[TopicId, ...]] = ((), ())
        if self._client is not None:
            streams.take_part_through(self._client)
            links.reach = self._reach
            links.why_foreign = self._why_foreign

    @property
    def is_edge(self) -> bool:
        """Whether this node has links to its proxies, and on local networks, and to nobody else."""
        return self._client is not None

    def start(self, now: float) -> None:
        """Turn to our proxies; go on serving our clients."""
        if self._client is not None:
            self._client.start()
            self._sleeping.start()
        if self._proxy is not None:
            self._proxy.start()

    def stop(self, now: float) -> None:
        """The node stops; called before streams are left."""
        if self._client is not None:
            self._client.stop()

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """A proxy may be there."""
        if self._client is not None:
            self._client.handle_link_up(event.peer, is_fit="edge" in event.hello.protocols)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """A proxy or a client may be gone."""
        if self._client is not None:
            self._client.handle_link_down(event.peer, event.reason)
        if self._proxy is not None:
            self._proxy.handle_link_down(event.peer, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """A proxy may be out of reach."""
        if self._client is not None:
            self._client.handle_dial_failed(event.peer, event.reason)

    # Messages.

    @on_message(Serve)
    def handle_serve(self, peer: PeerId, message: Serve, now: float) -> None:
        """A client wants to be served."""
        if self._proxy is not None:
            self._proxy.handle_serve(peer, message, now)
            return
        self._reject(peer, Reason.NOT_RESPONSIBLE, message)
        answers = (Answer(Reason.NOT_RESPONSIBLE, False),) * len(message.streams)
        self._out.send(peer, Served(message.request, answers, 0, 0, 0))

    @on_message(Unserve)
    def handle_unserve(self, peer: PeerId, message: Unserve, now: float) -> None:
        """A client wants no more of a stream."""
        if self._proxy is None:
            self._reject(peer, Reason.NOT_RESPONSIBLE, message)
        else:
            self._proxy.handle_unserve(peer, message, now)

    @on_message(Taken)
    def handle_taken(self, peer: PeerId, message: Taken, now: float) -> None:
        """A client says what has arrived."""
        if self._proxy is None:
            self._reject(peer, Reason.NOT_RESPONSIBLE, message)
        else:
            self._proxy.handle_taken(peer, message)

    @on_message(Served)
    def handle_served(self, peer: PeerId, message: Served, now: float) -> None:
        """A proxy answers."""
        if self._client is None:
            self._reject(peer, Reason.STALE, message)
        else:
            self._client.handle_served(peer, message)

    # Time.

    @on_timer(FailoverDue)
    def stand_in(self, timer: FailoverDue, now: float) -> None:
        """A proxy is missed."""
        # Asleep none is; whether one is, is seen once we are awake.
        if self._client is not None and not self._sleeping.asleep:
            self._client.stand_in()

    @on_timer(AnswerDue)
    def ask_again(self, timer: AnswerDue, now: float) -> None:
        """A proxy did not answer in time."""
        if self._client is not None:
            self._client.ask_again(timer.peer)

    @on_timer(RetryDue)
    def ask_refused(self, timer: RetryDue, now: float) -> None:
        """What proxies refused is asked of them again."""
        if self._client is not None:
            self._client.ask_refused()

    @on_timer(TakenDue)
    def compare_streams(self, timer: TakenDue, now: float) -> None:
        """The proxies are told what has arrived."""
        if self._client is not None:
            self._client.compare_streams()

    @on_timer(ReviewDue)
    def review_kept(self, timer: ReviewDue, now: float) -> None:
        """What is kept for clients may be too much or too old."""
        if self._proxy is not None:
            self._proxy.review_kept(now)

    @on_timer(SleepDue)
    def sleep_by_turns(self, timer: SleepDue, now: float) -> None:
        """In battery mode it is time to sleep."""
        if self._client is not None:
            self._fall_asleep(self._client, told=False)

    @on_timer(WakeDue)
    def wake_by_turns(self, timer: WakeDue, now: float) -> None:
        """In battery mode it is time to wake up."""
        if self._client is not None:
            self._wake_up(self._client, now)

    # Commands.

    @on_command(ExamineEdge)
    def tell_status(self, request: int, command: ExamineEdge, now: float) -> None:
        """How the edge stands."""
        self._out.reply(request, self.status())

    @on_command(Sleep)
    def sleep(self, request: int, command: Sleep, now: float) -> None:
        """Let go of all links until the word."""
        if self._client is None:
            raise Refused(Reason.NOT_ALLOWED, _NO_EDGE)
        self._fall_asleep(self._client, told=True)
        self._out.reply(request, Done())

    @on_command(Wake)
    def wake(self, request: int, command: Wake, now: float) -> None:
        """Turn to the proxies again."""
        if self._client is None:
            raise Refused(Reason.NOT_ALLOWED, _NO_EDGE)
        self._wake_up(self._client, now)
        self._out.reply(request, Done())

    @on_input(Asked)
    def wake_for(self, event: Asked[object], now: float) -> None:
        """The application has something to send: in battery mode that ends sleep."""
        is_sent = isinstance(event.command, Publish | SendToRoom)
        if is_sent and self._client is not None and self._sleeping.is_interruptible:
            self._wake_up(self._client, now)

    # Whom this node has links to.

    def _why_foreign(self, peer: PeerId) -> str | None:
        """Why this node may have no link to a peer: on the edge, if it is no proxy and not nearby."""
        if self._client is None or peer in self._client.all or peer in self.nearby:
            return None
        return f"{_ALONE}: see [edge]"

    def check_hold(self, hold: Hold) -> bool:
        """Whether a wish for a link is granted. On the edge the client alone chooses among proxies.

        What is refused is recorded; that a part waits for a proxy is nothing to tell of.
        """
        if self._client is None or hold.purpose == PURPOSE or hold.peer in self.nearby:
            return True
        if hold.peer in self._client.all or hold.peer in self._refused:
            return False
        self._refused[hold.peer] = None
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        note = f"{_ALONE}: {hold.purpose}"
        self._out.record(Record(Kind.REJECTED, peer=hold.peer, reason=Reason.NOT_ALLOWED, note=note))
        return False

    def settle_local(self, changes: Iterable[LanChange], local: LocalNetworks, now: float) -> None:
        """Who came to or left our local networks, and what may be spoken of there or with proxies by now."""
        if self._client is None:
            return
        for change in changes:
            if local.is_here(change.peer):
                self.nearby[change.peer] = None
                self._refused.pop(change.peer, None)
            else:
                self.nearby.pop(change.peer, None)
        wanted = (local.spoken, local.policy.denied(CORE))
        if wanted != self._settled:
            self._settled = wanted
            self._streams.settle(*wanted, now)

    def is_ours(self, peer: PeerId) -> bool:
        """Whether a peer is one of our proxies: with them nothing is spoken of but what they serve."""
        return self._client is not None and peer in self._client.all

    def _reach(self, peer: PeerId, hints: tuple[str, ...]) -> tuple[str, ...]:
        """Proxies wherever they are; others on the local network alone, and while they are there."""
        if self.is_ours(peer):
            return hints
        return tuple(hint for hint in hints if peer in self.nearby and is_lan_hint(hint))

    def status(self) -> EdgeStatus:
        """How the edge stands."""
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


def edge_delivery(config: PeerConfig) -> DeliveryConfig:
    """How events are delivered here: who is often away waits for what is missing until it can ask."""
    return replace(config.delivery, gap_waits=True) if config.edge.proxies else config.delivery


def only_links(config: PeerConfig) -> tuple[PeerId, ...] | None:
    """The peers to whom this node has links at all; None: to anyone."""
    proxies = tuple(contact.peer for contact in config.edge.proxies)
    return proxies or None
