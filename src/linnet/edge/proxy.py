"""The serving side: a node that takes part in streams for others, and keeps what they miss.

It joins each stream once, under its own name, however many clients want it. It knows clients by the
keys of their devices, and holds no key of a person or of anything that is sealed.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.errors import BadText, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.core.timers import Timer
from linnet.delivery.chain import ChainKey
from linnet.edge.messages import Answer, Serve, Served, Taken, Unserve, Wanted
from linnet.edge.notices import Keep, LetGo, Reached, Trim
from linnet.edge.proxy_commands import ClientStatus
from linnet.edge.proxy_config import ProxyConfig
from linnet.edge.quota import trims
from linnet.edge.served_book import ServedBook
from linnet.edge.standing import Standing
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import NeighborDown
from linnet.trace.records import Kind, Record

LARGEST_TAKEN = 65_536
"""Chains of one stream of which a client's word is remembered: as many as a stream has at most."""
_OURS = "me/"
"""What a stream's name begins with if it means the node's own person: a client means another."""


class ReviewDue(Timer, frozen=True):
    """It is to be looked for what is too much or too old."""


class Proxy:
    """All clients of a node."""

    def __init__(
        self,
        config: ProxyConfig,
        store: Store,
        standing: Standing,
        topic_of: Callable[[str], TopicId],
        out: Outbox,
    ) -> None:
        self._config = config
        self._log = store.log
        self._book = ServedBook(store.cells)
        self._standing = standing
        self._topic_of = topic_of
        self._out = out
        self._allowed = dict.fromkeys(config.allow)
        self._active: dict[PeerId, dict[TopicId, None]] = {}
        """What is served over the links that are open."""
        self._taken: dict[PeerId, dict[TopicId, dict[ChainKey, int]]] = {}
        self._is_review_set = False

    def start(self) -> None:
        """Go on with what was served before a restart."""
        for topic, stream in self._book.streams.items():
            self._keep_stream(topic, stream)
        self._review_later()

    # Messages.

    def handle_serve(self, peer: PeerId, message: Serve, now: float) -> None:
        """A client wants to be served; it is told once that is written down."""
        answers: list[Answer] = []
        reached: list[Reached] = []
        is_written = False
        for wanted in message.streams:
            try:
                topic = self._admit(peer, wanted)
            except RemoteError as refusal:
                answers.append(Answer(refusal.reason, False))
                self._record_refusal(peer, refusal)
                continue
            if not self._book.keeps(topic):
                self._keep_stream(topic, wanted.stream)
                self._out.record(Record(Kind.CONTROL, topic, peer=peer, note="served"))
            is_written = self._book.want(peer, topic, wanted.stream, now) or is_written
            same = self._standing.digest(topic) == wanted.digest
            answers.append(Answer(None, same))
            if same:
                self._note_all_taken(peer, topic)
            self._active.setdefault(peer, {})[topic] = None
            reached.append(Reached(topic, peer, same))
        served = self._served(peer, message.request, answers)
        if is_written:
            self._out.committed.send(peer, served)
        else:
            self._out.send(peer, served)
        for each in reached:
            self._out.notify(each)
        self._review_later()

    def handle_unserve(self, peer: PeerId, message: Unserve, now: float) -> None:
        """A client wants no more of a stream, for now or for good."""
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
        """A client says what has arrived: of that the oldest go first, if anything has to."""
        if message.topic not in self._book.wishes.get(peer, {}):
            reason = Reason.NOT_JOINED
            self._out.record(Record(Kind.REJECTED, message.topic, peer=peer, reason=reason, note="taken"))
            return
        reached = self._taken.setdefault(peer, {}).setdefault(message.topic, {})
        for place in message.chains:
            key = place.author + place.device
            if key in reached or len(reached) < LARGEST_TAKEN:
                reached[key] = max(reached.get(key, -1), place.last)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """A client's link is gone: what it wants is kept from now on."""
        for topic in self._active.pop(peer, {}):
            wish = self._book.wishes.get(peer, {}).get(topic)
            if wish is not None:
                self._book.want(peer, topic, wish.stream, now)
            self._out.notify(NeighborDown(topic, peer))

    # Time.

    def review_kept(self, now: float) -> None:
        """Look for what is too much or too old."""
        self._is_review_set = False
        for peer, wishes in list(self._book.wishes.items()):
            for topic, wish in list(wishes.items()):
                is_here = topic in self._active.get(peer, {})
                if not is_here and now - wish.asked_at >= self._config.retention:
                    note = "the client did not come back"
                    reason = Reason.RETENTION
                    self._out.record(Record(Kind.EXPIRED, topic, peer=peer, reason=reason, note=note))
                    self._forget_wish(peer, topic, now)
        for topic, stream in self._book.ended(now):
            note = "nobody is served it any more"
            self._out.record(Record(Kind.CONTROL, topic, reason=Reason.RETENTION, note=note))
            self._out.notify(LetGo(topic, stream))
        for topic, most in trims(self._log, self._book.wishes, self._taken, self._config.bytes).items():
            self._out.notify(Trim(topic, most))
        self._review_later()

    def status(self) -> tuple[ClientStatus, ...]:
        """Every client."""
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

    def _admit(self, peer: PeerId, wanted: Wanted) -> TopicId:
        """The topic of what is asked for; `RemoteError` if it is refused."""
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
        self._book.forget(peer, topic, now + self._config.retention)
        if peer not in self._book.wishes:
            self._taken.pop(peer, None)
        self._review_later()

    def _note_all_taken(self, peer: PeerId, topic: TopicId) -> None:
        places = self._standing.reached(topic)[:LARGEST_TAKEN]
        self._taken.setdefault(peer, {})[topic] = {each.author + each.device: each.last for each in places}

    def _keep_stream(self, topic: TopicId, stream: str) -> None:
        self._out.notify(Keep(topic, stream, self._config.retention, self._config.bytes))

    def _kept_bytes(self, peer: PeerId) -> int:
        return sum(self._log.kept(topic).bytes for topic in self._book.wishes.get(peer, {}))

    def _served(self, peer: PeerId, request: int, answers: list[Answer]) -> Served:
        config = self._config
        return Served(request, tuple(answers), self._kept_bytes(peer), config.bytes, int(config.retention))

    def _record_refusal(self, peer: PeerId, refusal: RemoteError) -> None:
        note = f"serve: {refusal.detail}"[:120]
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=refusal.reason, note=note))

    def _review_later(self) -> None:
        if not self._is_review_set and not self._book.is_empty:
            self._is_review_set = True
            self._out.set_timer(self._config.look_period, ReviewDue())
