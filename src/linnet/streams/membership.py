"""The streams that a node is in: opens them, joins them as their owners want, and leaves them.

The overlay of a stream at this node is the user's choice, or what the configuration says. For nodes on the
edge and their proxies, this module says how far a stream is known, and acts when the two meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from linnet.core.errors import Refused, StoreError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import TopicTimer
from linnet.delivery.context import Context
from linnet.delivery.messages import ChainPlace
from linnet.delivery.subscriptions import has_cursor
from linnet.edge.edge_client import EdgeClient
from linnet.edge.messages import digest_of
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.commands import NO_PART
from linnet.overlay.notices import StorageKnown
from linnet.overlay.part import Overlays
from linnet.overlay.tracker_choice import TrackerChoice
from linnet.overlay.tracker_client import TopicOptions
from linnet.streams.commands import ChainStatus, OverlayIs, StreamStatus
from linnet.streams.config import StorageRule, StreamOptions, StreamsConfig
from linnet.streams.lazy_peers import LazyLinks
from linnet.streams.storage_room import StorageRoom
from linnet.streams.stream import Stream
from linnet.streams.stream_names import own_name, topic_of

SPACE = "stream.overlay"
"""The cells that hold the user's choice of an overlay for each stream."""


class LingerDue(TopicTimer, frozen=True, gc=False):
    """Time to leave a stream that nobody here reads, if it was not used lately."""


class Memberships:
    """The joined streams, by topic and by the names that the application uses.

    The notices that an overlay or a proxy sends while a stream is joined or left go into the outbox;
    `linnet.streams.part` acts on them at once.
    """

    def __init__(
        self,
        context: Context,
        out: Outbox,
        overlays: Overlays,
        registry: TrackerChoice,
        config: StreamsConfig,
    ) -> None:
        self._context = context
        self._out = out
        self._overlays = overlays
        self._choice = OverlayChoice(context.store.cells, config.options, config.overlay)
        self._registry = registry
        self._has_trackers = len(registry) > 0
        self._room = StorageRoom(context)
        self._lazy_links = LazyLinks(context.config.lazy_links)
        self._options = config.options
        self._rules = {rule.stream: rule for rule in config.rules}
        self._configured = tuple(self._rules)
        self.client: EdgeClient | None = None
        """Joins streams through proxies instead of overlays, at a node on the edge."""
        self._nearby: dict[TopicId, None] = {}
        self._withheld: dict[TopicId, None] = {}
        self.by_topic: dict[TopicId, Stream] = {}
        """The joined streams."""
        self._by_name: dict[str, Stream] = {}
        self._used_at: dict[TopicId, float] = {}
        """For streams that may be left: when each was last used, while its timer runs."""
        self.get = self.by_topic.get
        """Return the stream of a topic, if it is joined; called for every message."""

    def __iter__(self) -> Iterator[Stream]:
        return iter(list(self.by_topic.values()))

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the streams that this node keeps for others."""
        return tuple(self._rules)

    def tracker(self, stream: Stream) -> PeerId | None:
        """Return the tracker that we follow in a stream."""
        return self._overlays.tracker(stream.topic)

    def is_alone(self, stream: Stream) -> bool:
        """Return whether we know nothing that could lead to another node in a stream."""
        if self.client is not None or self._has_trackers or self._named_trackers(stream.name, stream):
            return False
        return self.overlay(stream) is Overlay.TRACKER

    def why_alone(self, stream: Stream) -> Reason | None:
        """Return why a stream has no neighbours, if known: no tracker, or no one can dial us nor we them."""
        if stream.flood.neighbors:
            return None
        if self.is_alone(stream):
            return Reason.NO_ADDRESS
        return Reason.UNREACHABLE_INBOUND if self._overlays.is_unreachable(stream.topic) else None

    def status(self) -> tuple[StreamStatus, ...]:
        """Describe the state of every stream."""
        return tuple(
            status_of(each, self._context, self.tracker(each), self.overlay(each), self.why_alone(each))
            for each in self
        )

    def open(self, name: str, now: float) -> Stream:
        """Return the stream of this name, joined if it was not. Raises `BadText` if the name is invalid."""
        known = self._by_name.get(name)
        if known is not None:
            return known
        full = own_name(name, self._context.author)
        known = self.by_topic.get(topic_of(full))
        if known is not None:
            self._by_name[name] = known
            return known
        stream = self._by_name[name] = Stream(full, self._context, self._out, self._room, self._lazy_links)
        self.by_topic[stream.topic] = stream
        rule = self._rules.get(full)
        if rule is not None:
            stream.keep(rule)
        self.join(stream, now)
        return stream

    def keep(self, rule: StorageRule, now: float) -> None:
        """Keep a stream for others from now on; does nothing if we keep it already."""
        if rule.stream in self._configured:
            self.open(rule.stream, now)
            return
        self._rules[rule.stream] = rule
        stream = self.open(rule.stream, now)
        if not stream.stores:
            stream.keep(rule)
            self.join(stream, now)

    def let_go(self, name: str, now: float) -> None:
        """Stop keeping a stream for others, unless the configuration says so."""
        stream = self._by_name.get(name)
        if name in self._configured or self._rules.pop(name, None) is None or stream is None:
            return
        stream.stores = False
        stream.keeper.let_go(is_used=bool(stream.readers) or stream.publisher.next > 0)
        self.join(stream, now)
        self.linger(stream, now)

    def join(self, stream: Stream, now: float) -> None:
        """Join as the owner's policy says, as far as it is known; does nothing if that is done already."""
        if self.client is not None:
            self._ask_proxies(stream, self.client)
            self._join_nearby(stream, now)
            return
        options = self._options.get(stream.name, StreamOptions())
        policy = stream.governance.policy
        stream.name_storage(policy.storage or options.storage, now)
        wanted = TopicOptions(
            stream.topic,
            self._trackers(stream.name, stream.topic, stream),
            degree=policy.degree or options.degree,
            near=policy.near or options.near,
            storage=stream.stores,
        )
        # When the overlay changes, neighbours in the old one may be members of the new one.
        contacts = tuple(Contact(peer, ()) for peer in stream.flood.neighbors)
        self._overlays.join(self.overlay(stream), wanted, now, contacts)
        stream.flood.route(self._overlays.routing(stream.topic))
        if self.overlay(stream) is Overlay.TRACKER:
            stream.lazy.begin()
        else:
            stream.lazy.stop()  # A ring has neighbours of several kinds, which nobody else chose.

    def settle(self, nearby: Iterable[TopicId], withheld: Iterable[TopicId], now: float) -> None:
        """Set, on the edge, the streams that also use local networks, and those hidden from proxies."""
        before, self._nearby = self._nearby, dict.fromkeys(nearby)
        self._withheld = dict.fromkeys(withheld)
        for stream in self:
            self.join(stream, now)
            if stream.topic in before and stream.topic not in self._nearby:
                self._overlays.leave(stream.topic, now)
                stream.flood.route(None)

    def _ask_proxies(self, stream: Stream, client: EdgeClient) -> None:
        if stream.topic not in self._withheld:
            known = client.want_stream(stream.topic, stream.name)
            if known is not None:
                self._out.notify(known)
            return
        self._leave_proxies(stream, client, keep=False)
        if stream.storage:
            self._out.notify(StorageKnown(stream.topic, ()))

    def _leave_proxies(self, stream: Stream, client: EdgeClient, keep: bool) -> None:
        for down in client.drop_stream(stream.topic, keep):
            self._out.notify(down)

    def _join_nearby(self, stream: Stream, now: float) -> None:
        """Join a stream on our local networks too, beside the proxies."""
        topic = stream.topic
        if topic not in self._nearby or self._overlays.overlay(topic) is not None:
            return
        self._overlays.join(Overlay.RING, TopicOptions(topic, (), 0, storage=stream.stores), now)
        stream.flood.route(self._overlays.routing(topic))

    def overlay(self, stream: Stream) -> Overlay:
        """Return the overlay that a stream has here, or will have."""
        return self._choice.of(stream.name, stream.topic)

    def switch(self, name: str, overlay: Overlay | None, now: float) -> OverlayIs:
        """Switch a stream to another overlay, joined or not; raises `Refused` if it cannot work there."""
        if self.client is not None:
            detail = "a node on the edge takes part through its proxies: they choose the overlay"
            raise Refused(Reason.UNSUPPORTED, detail)
        if overlay is Overlay.RING and self._overlays.trackerless is None:
            raise Refused(Reason.UNSUPPORTED, NO_PART)
        full = own_name(name, self._context.author)
        topic = topic_of(full)
        stream = self.by_topic.get(topic)
        if overlay is Overlay.TRACKER and not self._trackers(full, topic, stream):
            raise Refused(Reason.UNSUPPORTED, "no tracker is known: name one with linnet up --tracker")
        before = self._choice.of(full, topic)
        self._choice.choose(topic, overlay)
        told = OverlayIs(topic, self._choice.of(full, topic), before)
        if stream is not None:
            self.join(stream, now)
        return told

    def _trackers(self, name: str, topic: TopicId, stream: Stream | None) -> tuple[Contact, ...]:
        return self._registry.choose_trackers(topic, self._named_trackers(name, stream))

    def _named_trackers(self, name: str, stream: Stream | None) -> tuple[Contact, ...]:
        """Return the trackers that the owner of a stream names for it, or else our configuration."""
        wanted = () if stream is None else stream.governance.policy.trackers
        return wanted or self._options.get(name, StreamOptions()).trackers

    def leave(self, stream: Stream, now: float) -> None:
        """Leave a stream."""
        del self.by_topic[stream.topic]
        self._used_at.pop(stream.topic, None)
        self._by_name = {name: known for name, known in self._by_name.items() if known is not stream}
        stream.leave(now)
        if self.client is not None:
            self._leave_proxies(stream, self.client, has_cursor(self._context.store.cells, stream.topic))
        self._overlays.leave(stream.topic, now)

    def linger(self, stream: Stream, now: float) -> None:
        """Stay for a while in a stream that nobody here reads, counted from its last use."""
        is_armed = stream.topic in self._used_at
        self._used_at[stream.topic] = now
        if not is_armed:
            self._out.set_timer(self._context.config.linger, LingerDue(stream.topic))

    def leave_unused(self, stream: Stream, busy: bool, now: float) -> None:
        """Leave a stream that was not used for a while and is not needed."""
        left = self._used_at.pop(stream.topic, now) + self._context.config.linger - now
        if busy or stream.readers or stream.stores:
            return
        if left <= 0:
            self.leave(stream, now)
            return
        self._used_at[stream.topic] = now + left - self._context.config.linger
        self._out.set_timer(left, LingerDue(stream.topic))


class OverlayChoice:
    """The overlay of each stream; the user's choice is kept over restarts."""

    def __init__(self, cells: Cells, options: Mapping[str, StreamOptions], default: Overlay) -> None:
        self._cells = cells
        self._options = options
        self._default = default

    def of(self, name: str, topic: TopicId) -> Overlay:
        """Return the overlay of a stream."""
        chosen = self._cells.get(SPACE, topic)
        if chosen is None:
            options = self._options.get(name)
            return self._default if options is None else options.overlay or self._default
        try:
            return Overlay(chosen.decode())
        except ValueError as error:
            raise StoreError("a stored choice of an overlay is damaged") from error

    def choose(self, topic: TopicId, overlay: Overlay | None) -> None:
        """Store the user's choice of an overlay for a stream; None: use the configuration."""
        if overlay is None:
            self._cells.delete(SPACE, topic)
        else:
            self._cells.put(SPACE, topic, overlay.value.encode())


MOST_CHAINS = 256
"""The most chains that a status lists; a stream may have very many."""


def status_of(
    stream: Stream, context: Context, tracker: PeerId | None, overlay: Overlay, alone: Reason | None = None
) -> StreamStatus:
    """Describe the state of a stream at this node."""
    kept = context.store.log.kept(stream.topic)
    chains = [
        ChainStatus(
            chain.author,
            chain.device,
            chain.seen.last,
            sum(last - first + 1 for first, last in chain.missing()),
        )
        for chain in list(stream.ingest.chains.values())[:MOST_CHAINS]
    ]
    return StreamStatus(
        stream.name,
        stream.topic,
        tracker,
        tuple(stream.flood.neighbors),
        tuple(stream.storage),
        stream.stores,
        len(stream.readers),
        stream.received,
        stream.duplicates,
        stream.rejected,
        len(stream.gaps.repairs),
        stream.gaps.filled,
        stream.gaps.lost,
        kept.events,
        kept.bytes,
        tuple(chains),
        overlay,
        alone,
        tuple(stream.checks.outcomes.values()),
        stream.keeper.refuses,
        stream.lazy.linked,
        tuple(stream.flood.grafted),
        stream.inspection.replaced,
        stream.isolation.is_cut_off,
    )


class Serving:
    """The streams of a node as proxies and clients see them (`linnet.edge.messages.Standing`)."""

    def __init__(self, context: Context, memberships: Memberships) -> None:
        self._context = context
        self._memberships = memberships

    def digest(self, topic: TopicId) -> bytes | None:
        """Return a digest of how far a stream is known; None if it is not open here."""
        stream = self._memberships.get(topic)
        return None if stream is None else digest(stream, self._context)

    def reached(self, topic: TopicId) -> tuple[ChainPlace, ...]:
        """Return how far every chain was received without a gap."""
        stream = self._memberships.get(topic)
        return () if stream is None else reached(stream)


def reached(stream: Stream) -> tuple[ChainPlace, ...]:
    """Return how far every chain was received without a gap."""
    return tuple(
        ChainPlace(chain.author, chain.device, min(chain.base, chain.next - 1), chain.next - 1, False)
        for chain in stream.ingest.chains.values()
        if chain.next > 0
    )


def digest(stream: Stream, context: Context) -> bytes:
    """Compute a digest that is equal at two nodes that know the same chains, policy and revocations."""
    return digest_of(stream.topic, reached(stream), _marks(stream, context))


def _marks(stream: Stream, context: Context) -> Iterator[bytes]:
    policy = stream.governance.unit
    if policy is not None:
        yield policy.sig
    for chain in stream.ingest.chains.values():
        if context.cards.revocation_of(chain.author, chain.device) is not None:
            yield chain.key


def meet(stream: Stream, peer: PeerId, same: bool, now: float) -> None:
    """Meet the proxy, or a client, of a stream; a peer that knows the same need not be told anything."""
    stream.flood.up(peer)
    stream.flood.neighbors[peer].is_served = True
    if not same:
        stream.handle_neighbor_up(peer, now)
        _ask_storage(stream, peer, same)
        return
    _ask_storage(stream, peer, same)
    stream.send_backlog(now)
    if peer in stream.storage and not stream.ingest.anchored:
        stream.note_anchored()


def _ask_storage(stream: Stream, peer: PeerId, same: bool) -> None:
    """Send the requests that waited for a storage node."""
    if peer not in stream.storage:
        return
    stream.gaps.handle_link_up(peer)
    if same:
        stream.publisher.watch_if_owed(peer)
    else:
        stream.publisher.handle_link_up(peer)
    stream.readers.handle_link_up(peer)
    stream.acknowledgements.handle_link_up(peer)
