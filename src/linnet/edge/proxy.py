"""The serving side: a node that takes part in streams for clients, and keeps events while they are away.

It joins each stream once, under its own name, however many clients want it. It knows clients by the keys of
their devices, and holds no key of a person or of anything that is sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from linnet.core.errors import BadText, RemoteError
from linnet.core.fair_shares import FairShares, Origins
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells, Entry, EventLog, Store
from linnet.core.timers import Timer
from linnet.delivery.chain import ChainKey
from linnet.edge.commands import ClientStatus
from linnet.edge.config import ProxyConfig
from linnet.edge.messages import Answer, Serve, Served, Standing, Taken, Unserve, Wanted
from linnet.edge.notices import Keep, LetGo, Reached, Trim
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import NeighborDown
from linnet.trace.records import Kind, Record

LARGEST_TAKEN = 65_536
"""The most chains, of all streams together, for which one client's word is remembered: as many as one stream
can have. What a client has of others counts as not taken."""
_OURS = "me/"
"""The prefix of streams of the node's own person: a client would mean another person."""


class ReviewDue(Timer, frozen=True):
    """Time to look for kept events that are too many or too old."""


class Proxy:
    """Serves the clients of a node."""

    def __init__(
        self,
        config: ProxyConfig,
        store: Store,
        standing: Standing,
        topic_of: Callable[[str], TopicId],
        out: Outbox,
        origins: Origins | None = None,
    ) -> None:
        """`origins` says from which networks clients come, which share what is scarce."""
        self._config = config
        self._log = store.log
        self._book = ServedBook(store.cells, config.clients, origins or Origins())
        self._standing = standing
        self._topic_of = topic_of
        self._out = out
        self._allowed = dict.fromkeys(config.allow)
        self._active: dict[PeerId, dict[TopicId, None]] = {}
        """The streams that are served over open links."""
        self._taken: dict[PeerId, dict[TopicId, dict[ChainKey, int]]] = {}
        self._is_review_set = False

    def start(self) -> None:
        """Resume the streams that were served before a restart."""
        for topic, stream in self._book.streams.items():
            self._keep_stream(topic, stream)
        self._review_later()

    # Messages.

    def handle_serve(self, peer: PeerId, message: Serve, now: float) -> None:
        """Serve streams to a client; answered once that is written."""
        answers: list[Answer] = []
        reached: list[Reached] = []
        is_written = False
        for wanted in message.streams:
            try:
                topic = self._admit_stream(peer, wanted)
            except RemoteError as refusal:
                answers.append(Answer(refusal.reason, False))
                self._record_refusal(peer, refusal)
                continue
            if not self._book.is_kept(topic):
                self._keep_stream(topic, wanted.stream)
                self._out.record(Record(Kind.CONTROL, topic, peer=peer, note="served"))
            is_written = self._book.note_wish(peer, topic, wanted.stream, now) or is_written
            same = self._standing.digest(topic) == wanted.digest
            answers.append(Answer(None, same))
            if same:
                self._note_all_taken(peer, topic)
            self._active.setdefault(peer, {})[topic] = None
            reached.append(Reached(topic, peer, same))
        served = self._make_served(peer, message.request, answers)
        if is_written:
            self._out.committed.send(peer, served)
        else:
            self._out.send(peer, served)
        for each in reached:
            self._out.notify(each)
        self._review_later()

    def handle_unserve(self, peer: PeerId, message: Unserve, now: float) -> None:
        """Stop serving a stream to a client, for now or for good."""
        try:
            topic = self._topic_of(message.stream)
        except BadText as error:
            self._record_refusal(peer, RemoteError(Reason.MALFORMED, str(error)))
            return
        if self._active.get(peer, {}).pop(topic, self) is None:
            self._out.notify(NeighborDown(topic, peer))
        if not message.keep:
            self._forget_wish(peer, topic, now)

    def handle_taken(self, peer: PeerId, message: Taken) -> None:
        """Note which events have arrived at a client: if some must be evicted, these go first."""
        if message.topic not in self._book.wishes.get(peer, {}):
            reason = Reason.NOT_JOINED
            self._out.record(Record(Kind.REJECTED, message.topic, peer=peer, reason=reason, note="taken"))
            return
        reached = self._taken.setdefault(peer, {}).setdefault(message.topic, {})
        room = self._taken_room(peer)
        for place in message.chains:
            key = place.author + place.device
            if key in reached or room > 0:
                room -= key not in reached
                reached[key] = max(reached.get(key, -1), place.last)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Keep what a client wants from now on, since its link is gone."""
        for topic in self._active.pop(peer, {}):
            wish = self._book.wishes.get(peer, {}).get(topic)
            if wish is not None:
                self._book.note_wish(peer, topic, wish.stream, now)
            self._out.notify(NeighborDown(topic, peer))

    # Time.

    def review_kept(self, now: float) -> None:
        """Look for kept events that are too many or too old."""
        self._is_review_set = False
        for peer, wishes in list(self._book.wishes.items()):
            for topic, wish in list(wishes.items()):
                is_here = topic in self._active.get(peer, {})
                if not is_here and now - wish.asked_at >= self._config.retention:
                    note = "the client did not come back"
                    reason = Reason.RETENTION
                    self._out.record(Record(Kind.EXPIRED, topic, peer=peer, reason=reason, note=note))
                    self._forget_wish(peer, topic, now)
        for topic, stream in self._book.take_ended(now):
            note = "nobody is served it any more"
            self._out.record(Record(Kind.CONTROL, topic, reason=Reason.RETENTION, note=note))
            self._out.notify(LetGo(topic, stream))
        for topic, most in find_trims(self._log, self._book.wishes, self._taken, self._config.bytes).items():
            self._out.notify(Trim(topic, most))
        self._review_later()

    def status(self) -> tuple[ClientStatus, ...]:
        """Describe all clients."""
        return tuple(
            ClientStatus(
                peer,
                peer in self._active,
                tuple(wish.stream for wish in wishes.values()),
                self._kept_bytes(peer),
                self._config.bytes,
                max(wish.asked_at for wish in wishes.values()),
            )
            for peer, wishes in self._book.wishes.items()
        )

    # The rest.

    def _admit_stream(self, peer: PeerId, wanted: Wanted) -> TopicId:
        """Return the topic of a requested stream; raises `RemoteError` if the request is refused."""
        config = self._config
        if not config.open and peer not in self._allowed:
            raise RemoteError(Reason.NOT_ALLOWED, "this proxy serves listed devices alone")
        if wanted.stream.startswith(_OURS):
            raise RemoteError(Reason.MALFORMED, "whose stream this is has to be spelled out")
        try:
            topic = self._topic_of(wanted.stream)
        except BadText as error:
            raise RemoteError(Reason.MALFORMED, str(error)) from error
        wishes = self._book.wishes.get(peer)
        if wishes is None and len(self._book.wishes) >= config.clients:
            raise RemoteError(Reason.TOO_MANY, f"{config.clients} clients are served already")
        if wishes is not None and topic not in wishes and len(wishes) >= config.topics:
            raise RemoteError(Reason.TOO_MANY, f"{config.topics} streams of this client are served already")
        return topic

    def _forget_wish(self, peer: PeerId, topic: TopicId, now: float) -> None:
        self._taken.get(peer, {}).pop(topic, None)
        self._book.forget_wish(peer, topic, now + self._config.retention)
        if peer not in self._book.wishes:
            self._taken.pop(peer, None)
        for ended, stream in self._book.take_surplus():
            note = "too many streams are kept that nobody is served any more"
            self._out.record(Record(Kind.CONTROL, ended, reason=Reason.TOO_MANY, note=note))
            self._out.notify(LetGo(ended, stream))
        self._review_later()

    def _note_all_taken(self, peer: PeerId, topic: TopicId) -> None:
        self._taken.setdefault(peer, {}).pop(topic, None)
        places = self._standing.reached(topic)[: self._taken_room(peer)]
        self._taken[peer][topic] = {each.author + each.device: each.last for each in places}

    def _taken_room(self, peer: PeerId) -> int:
        """Return for how many more chains a client's word is remembered."""
        return max(0, LARGEST_TAKEN - sum(map(len, self._taken.get(peer, {}).values())))

    def _keep_stream(self, topic: TopicId, stream: str) -> None:
        self._out.notify(Keep(topic, stream, self._config.retention, self._config.bytes))

    def _kept_bytes(self, peer: PeerId) -> int:
        return sum(self._log.kept(topic).bytes for topic in self._book.wishes.get(peer, {}))

    def _make_served(self, peer: PeerId, request: int, answers: list[Answer]) -> Served:
        config = self._config
        return Served(request, tuple(answers), self._kept_bytes(peer), config.bytes, int(config.retention))

    def _record_refusal(self, peer: PeerId, refusal: RemoteError) -> None:
        note = f"serve: {refusal.detail}"[:120]
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=refusal.reason, note=note))

    def _review_later(self) -> None:
        if not self._is_review_set and not self._book.is_empty:
            self._is_review_set = True
            self._out.set_timer(self._config.look_period, ReviewDue())


MOST_ENDING = 256
"""Streams that are kept although nobody is served them any more, unless a proxy is configured otherwise."""
_NOBODY = PeerId(b"")
"""Stands for the clients from before a restart."""
_NEWCOMER = PeerId(b"newcomer")
_SERVED = "edge.served"
_ENDING = "edge.ending"
_FRESH = 3600.0
"""Seconds by which a client's last visit in the store may lag behind."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, float]).decode


class Wish(Struct, eq=False):
    """A stream that is served to a client."""

    stream: str
    asked_at: float
    """When it was last served over a link."""
    written_at: float


class ServedBook:
    """The wishes of all clients, and the streams that nobody wants any more but that are kept for a while."""

    def __init__(self, cells: Cells, most: int = MOST_ENDING, origins: Origins | None = None) -> None:
        """Keep at most so many streams that nobody wants any more."""
        self._cells = cells
        self._left: dict[TopicId, PeerId] = {}
        """The client that was the last to want each of these streams, if that was since the start."""
        self._shares = FairShares(most, origins or Origins())
        self.wishes: dict[PeerId, dict[TopicId, Wish]] = {}
        self.ending: dict[TopicId, tuple[str, float]] = {}
        """The name of each such stream, and until when it is kept."""
        self._clients: dict[TopicId, dict[PeerId, None]] = {}
        for key, value in cells.scan(_SERVED):
            stream, asked_at = _decode(value)
            peer, topic = PeerId(key[:32]), TopicId(key[32:])
            self.wishes.setdefault(peer, {})[topic] = Wish(stream, asked_at, asked_at)
            self._clients.setdefault(topic, {})[peer] = None
        for key, value in cells.scan(_ENDING):
            self.ending[TopicId(key)] = _decode(value)
            self._note_left(TopicId(key), _NOBODY)

    @property
    def streams(self) -> dict[TopicId, str]:
        """The names of all streams that are kept for a client, or were."""
        names = {topic: wish.stream for wishes in self.wishes.values() for topic, wish in wishes.items()}
        return names | {topic: name for topic, (name, _) in self.ending.items()}

    def is_kept(self, topic: TopicId) -> bool:
        """Return whether this stream is kept for a client, or was."""
        return topic in self._clients or topic in self.ending

    @property
    def is_empty(self) -> bool:
        """Whether no stream is kept."""
        return not self._clients and not self.ending

    def note_wish(self, peer: PeerId, topic: TopicId, stream: str, now: float) -> bool:
        """Note that a client wants a stream, or is still here; return whether anything was written."""
        wishes = self.wishes.setdefault(peer, {})
        wish = wishes.get(topic)
        is_new = wish is None
        if wish is None:
            wish = wishes[topic] = Wish(stream, now, now)
            self._clients.setdefault(topic, {})[peer] = None
        wish.asked_at = now
        if topic in self.ending:
            self._end(topic)
        if not is_new and now - wish.written_at < _FRESH:
            return False
        wish.written_at = now
        self._cells.put(_SERVED, peer + topic, _encode((stream, now)))
        return True

    def forget_wish(self, peer: PeerId, topic: TopicId, keep_until: float) -> bool:
        """Forget that a client wants a stream; return whether nobody does: it is kept until then."""
        wishes = self.wishes.get(peer, {})
        wish = wishes.pop(topic, None)
        if wish is None:
            return False
        self._cells.delete(_SERVED, peer + topic)
        if not wishes:
            del self.wishes[peer]
        clients = self._clients[topic]
        del clients[peer]
        if clients:
            return False
        del self._clients[topic]
        self.ending[topic] = (wish.stream, keep_until)
        self._note_left(topic, peer)
        self._cells.put(_ENDING, topic, _encode(self.ending[topic]))
        return True

    def take_ended(self, now: float) -> list[tuple[TopicId, str]]:
        """Forget the streams whose time has run out, and return them."""
        over = [(topic, name) for topic, (name, until) in self.ending.items() if until <= now]
        for topic, _ in over:
            self._end(topic)
        return over

    def take_surplus(self) -> list[tuple[TopicId, str]]:
        """Forget streams that nobody wants if they are too many, and return them.

        Those of the client and network with most of them go, and of these the one whose time is over first.
        """
        over: list[tuple[TopicId, str]] = []
        while self._shares.is_full(0) and (greediest := self._shares.find_greedier(_NEWCOMER, 0)) is not None:
            theirs = [topic for topic, peer in self._left.items() if peer == greediest]
            topic = min(theirs, key=lambda each: self.ending[each][1])
            over.append((topic, self.ending[topic][0]))
            self._end(topic)
        return over

    def _note_left(self, topic: TopicId, peer: PeerId) -> None:
        self._left[topic] = peer
        self._shares.add(peer)

    def _end(self, topic: TopicId) -> None:
        del self.ending[topic]
        self._shares.remove(self._left.pop(topic))
        self._cells.delete(_ENDING, topic)


LOOKED_AT = 256
"""Units of one stream that one review reads."""

TakenBy = Mapping[PeerId, Mapping[TopicId, Mapping[ChainKey, int]]]


def find_trims(
    log: EventLog, clients: Mapping[PeerId, Iterable[TopicId]], taken: TakenBy, most: int
) -> dict[TopicId, int]:
    """Return the bytes to which streams must shrink, oldest first, beginning with what clients have taken.

    A stream is kept once for all its clients, and counts for each of them. It is trimmed only when all of
    them are over their quota: what one of them has room for stays.
    """
    clients_of: dict[TopicId, list[PeerId]] = {}
    for peer, topics in clients.items():
        for topic in topics:
            clients_of.setdefault(topic, []).append(peer)
    kept = {topic: log.kept(topic).bytes for topic in clients_of}
    over = {peer for peer, topics in clients.items() if sum(kept[topic] for topic in topics) > most}
    left = dict(kept)
    for topics in clients.values():
        excess = sum(left[topic] for topic in topics) - most
        if excess > 0:
            free = [topic for topic in topics if over.issuperset(clients_of[topic])]
            for topic, size in _first_to_go(log, free, clients_of, taken, kept, left):
                if excess <= 0:
                    break
                left[topic] -= size
                excess -= size
    return {topic: most for topic, most in left.items() if most < kept[topic]}


def _first_to_go(
    log: EventLog,
    topics: Iterable[TopicId],
    clients_of: Mapping[TopicId, list[PeerId]],
    taken: TakenBy,
    kept: Mapping[TopicId, int],
    left: Mapping[TopicId, int],
) -> list[tuple[TopicId, int]]:
    """Return units by topic and size: those that all clients have taken, oldest first, then the others."""
    order: list[tuple[bool, float, TopicId, int]] = []
    for topic in topics:
        gone, still = kept[topic] - left[topic], True
        for _, entry in log.read(topic, 0, LOOKED_AT):
            still = still and all(_has(taken, peer, entry) for peer in clients_of[topic])
            if gone > 0:  # another client's turn has removed it
                gone -= len(entry.raw)
            else:
                order.append((not still, entry.stored_at, topic, len(entry.raw)))
    return [(topic, size) for _, _, topic, size in sorted(order, key=lambda each: each[:2])]


def _has(taken: TakenBy, peer: PeerId, entry: Entry) -> bool:
    reached = taken.get(peer, {}).get(entry.topic, {})
    return entry.last is not None and reached.get(entry.author + entry.device, -1) >= entry.last
