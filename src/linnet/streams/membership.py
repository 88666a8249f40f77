"""The streams that a node is in: how they are opened, joined as their owner wants it, and left.

Which overlay a stream has here is what the user chose, or what the configuration says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from linnet.core.errors import Refused, StoreError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.delivery.subscription import has_cursor
from linnet.edge.client import EdgeClient
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.notices import StorageKnown
from linnet.overlay.overlays import Overlays
from linnet.overlay.registry import Registry
from linnet.overlay.trackerless.commands import NO_PART
from linnet.streams.commands import OverlayIs
from linnet.streams.options import StorageRule, StreamOptions
from linnet.streams.stream import Stream
from linnet.streams.stream_names import own_name, topic_of

SPACE = "stream.overlay"
"""The cells that hold which overlay the user chose for a stream."""


class LingerDue(Timer, frozen=True, gc=False):
    """A stream that nobody here reads may have been used so long ago that it is left."""

    topic: TopicId


class Memberships:
    """Streams by topic, and by the names that the application calls them.

    What an overlay or a proxy tells while a stream is joined or left is among what goes into the outbox;
    `linnet.streams.part` acts on it at once.
    """

    def __init__(
        self,
        context: Context,
        out: Outbox,
        overlays: Overlays,
        registry: Registry,
        options: dict[str, StreamOptions],
        rules: Iterable[StorageRule],
        overlay: Overlay = Overlay.TRACKER,
    ) -> None:
        self._context = context
        self._out = out
        self._overlays = overlays
        self._choice = OverlayChoice(context.store.cells, options, overlay)
        self._registry = registry
        self._options = options
        self._rules = {rule.stream: rule for rule in rules}
        self._configured = tuple(self._rules)
        self.client: EdgeClient | None = None
        """What joins streams at a node on the edge, instead of the overlays."""
        self._nearby: dict[TopicId, None] = {}
        self._withheld: dict[TopicId, None] = {}
        self._by_topic: dict[TopicId, Stream] = {}
        self._by_name: dict[str, Stream] = {}
        self._used_at: dict[TopicId, float] = {}
        """When a stream that may be left was last used, while its timer runs."""
        self.get = self._by_topic.get
        """The stream of a topic, if it is joined; asked for every message."""

    def __iter__(self) -> Iterator[Stream]:
        return iter(list(self._by_topic.values()))

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the streams that this node keeps for others."""
        return tuple(self._rules)

    def tracker(self, stream: Stream) -> PeerId | None:
        """The tracker that is followed in a stream."""
        return self._overlays.tracker(stream.topic)

    def is_alone(self, stream: Stream) -> bool:
        """Whether nothing is known here that could lead to anybody else in a stream."""
        if self.client is not None or self.overlay(stream) is not Overlay.TRACKER:
            return False
        return not self._trackers(stream.name, stream.topic, stream)

    def why_alone(self, stream: Stream) -> Reason | None:
        """Why a stream has no neighbours, if known: no tracker, or nobody can dial us nor we others."""
        if stream.flood.neighbors:
            return None
        if self.is_alone(stream):
            return Reason.NO_ADDRESS
        return Reason.UNREACHABLE_INBOUND if self._overlays.is_unreachable(stream.topic) else None

    def open(self, name: str, now: float) -> Stream:
        """The stream of this name, joined if it was not. `BadText` if it cannot be a name."""
        known = self._by_name.get(name)
        if known is not None:
            return known
        full = own_name(name, self._context.author)
        known = self._by_topic.get(topic_of(full))
        if known is not None:
            self._by_name[name] = known
            return known
        stream = self._by_name[name] = Stream(full, self._context, self._out)
        self._by_topic[stream.topic] = stream
        rule = self._rules.get(full)
        if rule is not None:
            stream.keep(rule)
        self.join(stream, now)
        return stream

    def keep(self, rule: StorageRule, now: float) -> None:
        """Keep a stream for others from now on; nothing happens if that is so already."""
        if rule.stream in self._configured:
            self.open(rule.stream, now)
            return
        self._rules[rule.stream] = rule
        stream = self.open(rule.stream, now)
        if not stream.stores:
            stream.keep(rule)
            self.join(stream, now)

    def let_go(self, name: str, now: float) -> None:
        """Keep a stream for others no longer, unless the configuration says so."""
        stream = self._by_name.get(name)
        if name in self._configured or self._rules.pop(name, None) is None or stream is None:
            return
        stream.stores = False
        stream.keeper.let_go(is_used=bool(stream.readers) or stream.publisher.next > 0)
        self.join(stream, now)
        self.linger(stream, now)

    def join(self, stream: Stream, now: float) -> None:
        """Join as the owner wants it, as far as that is known; nothing happens if that is so already."""
        if self.client is not None:
            self._ask_proxies(stream, self.client)
            self._join_nearby(stream, now)
            return
        options = self._options.get(stream.name, StreamOptions())
        policy = stream.governance.policy
        self._overlays.join(
            stream.topic,
            self.overlay(stream),
            self._trackers(stream.name, stream.topic, stream),
            degree=policy.degree or options.degree,
            near=policy.near or options.near,
            storage=stream.stores,
            now=now,
            # Where the overlay changes, neighbours in the old one may be members of the new.
            contacts=tuple(Contact(peer, ()) for peer in stream.flood.neighbors),
        )
        stream.flood.route(self._overlays.routing(stream.topic))

    def settle(self, nearby: Iterable[TopicId], withheld: Iterable[TopicId], now: float) -> None:
        """On the edge: which streams are spoken of on local networks too, and which not with proxies."""
        before, self._nearby = self._nearby, dict.fromkeys(nearby)
        self._withheld = dict.fromkeys(withheld)
        for stream in self:
            self.join(stream, now)
            if stream.topic in before and stream.topic not in self._nearby:
                self._overlays.leave(stream.topic, now)
                stream.flood.route(None)

    def _ask_proxies(self, stream: Stream, client: EdgeClient) -> None:
        if stream.topic not in self._withheld:
            known = client.join(stream.topic, stream.name)
            if known is not None:
                self._out.notify(known)
            return
        self._leave_proxies(stream, client, keep=False)
        if stream.storage:
            self._out.notify(StorageKnown(stream.topic, ()))

    def _leave_proxies(self, stream: Stream, client: EdgeClient, keep: bool) -> None:
        for down in client.leave(stream.topic, keep):
            self._out.notify(down)

    def _join_nearby(self, stream: Stream, now: float) -> None:
        """Beside its proxies a node on the edge has those who are on its local networks."""
        topic = stream.topic
        if topic not in self._nearby or self._overlays.overlay(topic) is not None:
            return
        self._overlays.join(topic, Overlay.RING, (), degree=0, near=False, storage=stream.stores, now=now)
        stream.flood.route(self._overlays.routing(topic))

    def overlay(self, stream: Stream) -> Overlay:
        """The overlay that a stream has here, or is about to have."""
        return self._choice.of(stream.name, stream.topic)

    def switch(self, name: str, overlay: Overlay | None, now: float) -> OverlayIs:
        """Give a stream another overlay, joined or not; `Refused` if it would find nobody there."""
        if self.client is not None:
            detail = "a node on the edge takes part through its proxies: they choose the overlay"
            raise Refused(Reason.UNSUPPORTED, detail)
        if overlay is Overlay.RING and self._overlays.trackerless is None:
            raise Refused(Reason.UNSUPPORTED, NO_PART)
        full = own_name(name, self._context.author)
        topic = topic_of(full)
        stream = self._by_topic.get(topic)
        if overlay is Overlay.TRACKER and not self._trackers(full, topic, stream):
            raise Refused(Reason.UNSUPPORTED, "no tracker is known: name one with linnet up --tracker")
        before = self._choice.of(full, topic)
        self._choice.choose(topic, overlay)
        told = OverlayIs(topic, self._choice.of(full, topic), before)
        if stream is not None:
            self.join(stream, now)
        return told

    def _trackers(self, name: str, topic: TopicId, stream: Stream | None) -> tuple[Contact, ...]:
        wanted = () if stream is None else stream.governance.policy.trackers
        return self._registry.trackers(topic, wanted or self._options.get(name, StreamOptions()).trackers)

    def leave(self, stream: Stream, now: float) -> None:
        """Leave a stream."""
        del self._by_topic[stream.topic]
        self._used_at.pop(stream.topic, None)
        self._by_name = {name: known for name, known in self._by_name.items() if known is not stream}
        stream.leave()
        if self.client is not None:
            self._leave_proxies(stream, self.client, has_cursor(self._context.store.cells, stream.topic))
        self._overlays.leave(stream.topic, now)

    def linger(self, stream: Stream, now: float) -> None:
        """Stay for a while in a stream that nobody here reads, from the last time it was used."""
        is_armed = stream.topic in self._used_at
        self._used_at[stream.topic] = now
        if not is_armed:
            self._out.set_timer(self._context.config.linger, LingerDue(stream.topic))

    def leave_unused(self, stream: Stream, busy: bool, now: float) -> None:
        """The while is over: leave, unless the stream was used again or is needed."""
        left = self._used_at.pop(stream.topic, now) + self._context.config.linger - now
        if busy or stream.readers or stream.stores:
            return
        if left <= 0:
            self.leave(stream, now)
            return
        self._used_at[stream.topic] = now + left - self._context.config.linger
        self._out.set_timer(left, LingerDue(stream.topic))


class OverlayChoice:
    """The overlays of streams; a choice is kept over restarts."""

    def __init__(self, cells: Cells, options: Mapping[str, StreamOptions], default: Overlay) -> None:
        self._cells = cells
        self._options = options
        self._default = default

    def of(self, name: str, topic: TopicId) -> Overlay:
        """The overlay of a stream."""
        chosen = self._cells.get(SPACE, topic)
        if chosen is None:
            options = self._options.get(name)
            return self._default if options is None else options.overlay or self._default
        try:
            return Overlay(chosen.decode())
        except ValueError as error:
            raise StoreError("a stored choice of an overlay is damaged") from error

    def choose(self, topic: TopicId, overlay: Overlay | None) -> None:
        """The user wants this overlay for a stream; None: what is configured."""
        if overlay is None:
            self._cells.delete(SPACE, topic)
        else:
            self._cells.put(SPACE, topic, overlay.value.encode())
