"""The client side of the edge: a node that takes part in streams through its proxies.

Its only other links, to devices on its local networks, are not handled here.

For streams it is an overlay like others: a proxy that serves a stream is a neighbour in it and keeps it. Only
the client's own chains show how far it is in a stream, so a proxy may be changed at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.chain import ChainKey
from linnet.edge.commands import ProxyStatus, Refusal
from linnet.edge.config import EdgeConfig
from linnet.edge.messages import STREAMS_PER_MESSAGE, Serve, Served, Standing, Taken, Unserve, Wanted
from linnet.edge.notices import Reached, ServiceAsked
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import JoinRefused, NeighborDown, StorageKnown
from linnet.trace.records import Kind, Record

PURPOSE = "proxy"
"""The purpose for which proxies are held; on the edge no other purpose counts."""


class FailoverDue(Timer, frozen=True):
    """Links to proxies were missing for so long that others should stand in."""


class AnswerDue(Timer, frozen=True):
    """The time is up in which a proxy could answer a request."""

    peer: PeerId


class RetryDue(Timer, frozen=True):
    """Time to ask proxies again for streams that they refused."""


class TakenDue(Timer, frozen=True):
    """Time to tell the proxies which events have arrived."""


class EdgeClient:
    """The streams and the proxies of a node on the edge."""

    def __init__(self, config: EdgeConfig, standing: Standing, out: Outbox) -> None:
        self._config = config
        self._standing = standing
        self._out = out
        self._proxies = {contact.peer: ProxyState(contact) for contact in config.proxies}
        self._wanted: dict[TopicId, str] = {}
        self._request = 0
        self._is_stopped = False

    @property
    def used_proxies(self) -> tuple[PeerId, ...]:
        """The proxies in use now, linked or not."""
        return tuple(peer for peer, proxy in self._proxies.items() if proxy.used)

    @property
    def proxies(self) -> tuple[PeerId, ...]:
        """Every proxy that this node has."""
        return tuple(self._proxies)

    def start(self) -> None:
        """Hold links to the first proxies."""
        for proxy in list(self._proxies.values())[: self._config.at_once]:
            self._use_proxy(proxy)
        self._review_proxies()
        self._out.set_timer(self._config.taken_period, TakenDue())

    def stop(self) -> None:
        """Tell the proxies what has arrived, as the node stops: they keep what it wants."""
        self.tell_taken()
        self._is_stopped = True

    # Streams.

    def want_stream(self, topic: TopicId, stream: str) -> StorageKnown | None:
        """Request a stream; return the proxies that keep it for us, or None if it was requested already."""
        if topic in self._wanted:
            return None
        self._wanted[topic] = stream
        for proxy in self._proxies.values():
            proxy.unsaid.pop(stream, None)
            if proxy.is_usable and topic in self._find_share(proxy, [topic]):
                self._ask_proxy(proxy, [topic])
        # Proxies count as keeping it before they answer, since an answer may come after other messages.
        return self._storage_of(topic)

    def drop_stream(self, topic: TopicId, keep: bool) -> list[NeighborDown]:
        """Give up a stream; `keep`: the application will return to it. Return the proxies that served it."""
        stream = self._wanted.pop(topic, None)
        if stream is None or self._is_stopped:
            return []
        down: list[NeighborDown] = []
        for peer, proxy in self._proxies.items():
            is_served, is_told = proxy.is_serving(topic), not self._config.each or topic in proxy.asked
            proxy.forget_stream(topic)
            if proxy.is_usable and is_told:
                self._out.send(peer, Unserve(stream, keep))
            elif is_told and not keep:
                proxy.unsaid[stream] = None
            if is_served:
                down.append(NeighborDown(topic, peer))
        return down

    def handle_served(self, peer: PeerId, message: Served) -> None:
        """Note a proxy's answers for the requested streams."""
        proxy = self._proxies.get(peer)
        topics = None if proxy is None else proxy.pending.pop(message.request, None)
        if proxy is None or topics is None or len(topics) != len(message.answers):
            reason = Reason.STALE if topics is None else Reason.MALFORMED
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note="served"))
            return
        proxy.kept, proxy.most = message.kept_bytes, message.most_bytes
        if not proxy.pending:
            self._out.cancel_timer(AnswerDue(peer))
        for topic, answer in zip(topics, message.answers, strict=True):
            if topic not in self._wanted:
                continue
            proxy.answers[topic] = answer.refusal
            if answer.refusal is not None:
                self._note_refusal(proxy, topic, answer.refusal)
                continue
            proxy.told[topic] = self._reached(topic) if answer.same else {}
            if answer.same:
                proxy.agreed[topic] = self._digest(topic)
            self._out.notify(Reached(topic, peer, answer.same))
        self._share_streams()
        self._review_proxies()

    def compare_streams(self) -> None:
        """Tell the proxies what has arrived; where nothing is new, ask once whether they know more.

        A node that hears of a stream through one proxy alone must ask: nobody else tells what the proxy
        forgot.
        """
        for proxy in self._proxies.values():
            quiet: list[TopicId] = []
            for topic in proxy.served_topics:
                digest = self._digest(topic)
                if proxy.agreed.get(topic) == digest:
                    continue
                if proxy.seen.get(topic) == digest:
                    quiet.append(topic)
                else:
                    proxy.seen[topic] = digest
                    self._tell_proxy_taken(proxy, topic)
            self._ask_proxy(proxy, quiet)
        self._out.set_timer(self._config.taken_period, TakenDue())

    def tell_taken(self) -> None:
        """Tell the proxies what has arrived: the node is about to be away."""
        for proxy in self._proxies.values():
            for topic in proxy.served_topics:
                self._tell_proxy_taken(proxy, topic)

    def _tell_proxy_taken(self, proxy: ProxyState, topic: TopicId) -> None:
        told = proxy.told.setdefault(topic, {})
        places = self._standing.reached(topic)
        news = [each for each in places if told.get(each.author + each.device, -1) < each.last]
        told.update((each.author + each.device, each.last) for each in news)
        for start in range(0, len(news), CHAINS_PER_MESSAGE):
            page = Taken(topic, tuple(news[start : start + CHAINS_PER_MESSAGE]))
            self._out.committed.send(proxy.contact.peer, page)

    # Links.

    def handle_link_up(self, peer: PeerId, is_fit: bool = True) -> None:
        """Ask a proxy for all wanted streams, if it is fit to be one."""
        proxy = self._proxies.get(peer)
        if proxy is None:
            return
        if not is_fit:
            proxy.failure = Reason.UNSUPPORTED
            note = "it knows nothing of proxies"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note))
            self._fail_over()
            return
        proxy.up, proxy.is_missed, proxy.failure = True, False, None
        if proxy.used:
            self._greet_proxy(proxy)
            self._review_proxies()

    def handle_link_down(self, peer: PeerId, reason: Reason) -> None:
        """Note that the link to a proxy is gone; after a while the next one is used."""
        proxy = self._proxies.get(peer)
        if proxy is None or not proxy.up:
            return
        proxy.up, proxy.failure = False, reason
        self._end_service(proxy)
        self._review_proxies()

    def handle_dial_failed(self, peer: PeerId, reason: Reason) -> None:
        """Use the next proxy at once, since this one cannot be dialled."""
        proxy = self._proxies.get(peer)
        if proxy is None or proxy.up:
            return
        proxy.failure, proxy.is_missed = reason, True
        self._fail_over()
        self._share_streams()

    def forgive_proxies(self) -> None:
        """Count no proxy as missed: the node slept, and opens its links again."""
        for proxy in self._proxies.values():
            proxy.is_missed = False
        self._review_proxies()

    # Time.

    def stand_in(self) -> None:
        """Give the streams of proxies that are gone for too long to others, and use the next in line."""
        for proxy in self._proxies.values():
            proxy.is_missed = proxy.used and not proxy.up
        self._fail_over()
        self._share_streams()

    def ask_again(self, peer: PeerId) -> None:
        """Ask a proxy again that did not answer in time."""
        proxy = self._proxies.get(peer)
        if proxy is None or not proxy.is_usable:
            return
        lost, proxy.pending = proxy.pending, {}
        topics = (topic for asked in lost.values() for topic in asked if topic in self._wanted)
        self._ask_proxy(proxy, dict.fromkeys(topics))

    def ask_refused(self) -> None:
        """Ask proxies again for the streams that they refused."""
        for proxy in self._proxies.values():
            if proxy.up:
                self._ask_proxy(proxy, [topic for topic in proxy.refused_topics if topic in self._wanted])

    def status(self) -> tuple[ProxyStatus, ...]:
        """Describe every proxy."""
        return tuple(
            ProxyStatus(
                peer,
                proxy.contact.hints,
                proxy.used,
                proxy.up,
                len(proxy.served_topics),
                tuple(
                    Refusal(self._wanted[topic], refusal)
                    for topic, refusal in proxy.answers.items()
                    if refusal is not None and topic in self._wanted
                ),
                proxy.kept,
                proxy.most,
                proxy.failure,
            )
            for peer, proxy in self._proxies.items()
        )

    # The rest.

    def _ask_proxy(self, proxy: ProxyState, topics: Iterable[TopicId]) -> None:
        """Ask a linked proxy for streams, and again if no answer comes."""
        asked = list(topics)
        peer = proxy.contact.peer
        for start in range(0, len(asked), STREAMS_PER_MESSAGE):
            part = tuple(asked[start : start + STREAMS_PER_MESSAGE])
            self._request += 1
            proxy.pending[self._request] = part
            proxy.asked.update(dict.fromkeys(part))
            wanted = tuple(Wanted(self._wanted[each], self._digest(each)) for each in part)
            self._out.send(peer, Serve(self._request, wanted))
            self._out.notify(ServiceAsked(peer, part))
        if asked:
            self._out.set_timer(self._config.answer_timeout, AnswerDue(peer))

    def _note_refusal(self, proxy: ProxyState, topic: TopicId, reason: Reason) -> None:
        """Record that a proxy refuses a stream, and ask it again later; another may serve the stream."""
        note = f"{self._wanted[topic]}: the proxy does not serve it"
        self._out.record(Record(Kind.REJECTED, topic, peer=proxy.contact.peer, reason=reason, note=note))
        self._out.set_timer(self._config.retry_period, RetryDue())
        others = [each for each in self._proxies.values() if each.used and each is not proxy]
        if all(each.answers.get(topic) is not None for each in others):
            self._out.notify(JoinRefused(topic, reason))
        self._out.notify(self._storage_of(topic))

    def _review_proxies(self) -> None:
        """Release proxies that are no longer needed, or check soon whether another one is."""
        up = [proxy for proxy in self._proxies.values() if proxy.is_usable]
        if len(up) < self._count_wanted(up):
            if any(not proxy.used or self._config.each for proxy in self._proxies.values()):
                self._out.set_timer(self._config.failover_after, FailoverDue())
            return
        self._out.cancel_timer(FailoverDue())
        keep = up[: self._count_wanted(up)]
        for proxy in self._proxies.values():
            if proxy.used and proxy not in keep:
                self._release_proxy(proxy)
        if self._config.each:
            self._share_streams()

    def _count_wanted(self, up: list[ProxyState]) -> int:
        """Return how many proxies are wanted: one more for each that refuses a stream."""
        return self._config.at_once + sum(any(proxy.answers.values()) for proxy in up)

    def _fail_over(self) -> None:
        """Use the next proxy in line."""
        used = [proxy for proxy in self._proxies.values() if proxy.used]
        up = [proxy for proxy in used if proxy.up]
        spare = next((proxy for proxy in self._proxies.values() if not proxy.used), None)
        if spare is None or len(up) >= self._count_wanted(up):
            return
        self._out.record(Record(Kind.CONTROL, peer=spare.contact.peer, note="turned to another proxy"))
        self._use_proxy(spare)
        self._tell_storage(self._wanted)
        self._review_proxies()

    def _use_proxy(self, proxy: ProxyState) -> None:
        proxy.used, proxy.is_missed = True, False
        contact = proxy.contact
        self._out.hold(contact.peer, contact.hints, PURPOSE)
        if proxy.up:
            self._greet_proxy(proxy)

    def _greet_proxy(self, proxy: ProxyState) -> None:
        """Tell a proxy which streams are no longer wanted, and request those that are."""
        unsaid, proxy.unsaid = proxy.unsaid, {}
        for stream in unsaid:
            self._out.send(proxy.contact.peer, Unserve(stream, False))
        self._share_streams()

    # Sharing out.

    def _find_share(self, proxy: ProxyState, topics: Iterable[TopicId]) -> list[TopicId]:
        """Return which of these streams to request from a proxy."""
        return [topic for topic in topics if proxy.peer in self._allotted_proxies(topic)]

    def _allotted_proxies(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return the available proxies from which a stream is requested."""
        able = (
            peer
            for peer, proxy in self._proxies.items()
            if proxy.is_expected and proxy.answers.get(topic) is None
        )
        return allot_proxies(topic, able, self._config.each)

    def _share_streams(self) -> None:
        """Request streams that were not requested yet, and release those that another proxy serves now."""
        for proxy in self._proxies.values():
            if proxy.is_usable:
                new = self._find_share(proxy, (each for each in self._wanted if not proxy.is_asked(each)))
                self._ask_proxy(proxy, new)
                self._tell_storage(new if self._config.each else ())
        if self._config.each:
            for topic, stream in self._wanted.items():
                self._hand_over(topic, stream)

    def _hand_over(self, topic: TopicId, stream: str) -> None:
        """Release the stand-ins for a stream once its own proxies serve it."""
        right = self._allotted_proxies(topic)
        if not all(self._proxies[peer].is_serving(topic) for peer in right):
            return
        is_handed = False
        for peer, proxy in self._proxies.items():
            if proxy.is_usable and proxy.is_serving(topic) and peer not in right:
                is_handed = True
                proxy.forget_stream(topic)
                self._out.send(peer, Unserve(stream, False))
                self._out.notify(NeighborDown(topic, peer))
        if is_handed:
            self._tell_storage([topic])

    def _release_proxy(self, proxy: ProxyState) -> None:
        proxy.used = False
        self._end_service(proxy)
        self._out.release(proxy.contact.peer, PURPOSE)
        self._tell_storage(self._wanted)

    def _end_service(self, proxy: ProxyState) -> None:
        """Note that a proxy serves nothing any more, and await no answer from it."""
        peer = proxy.contact.peer
        for topic in proxy.end_service():
            self._out.notify(NeighborDown(topic, peer))
        self._out.cancel_timer(AnswerDue(peer))

    def _tell_storage(self, topics: Iterable[TopicId]) -> None:
        for topic in topics:
            self._out.notify(self._storage_of(topic))

    def _storage_of(self, topic: TopicId) -> StorageKnown:
        """Return the nodes that keep a stream for us: the proxies in use that have not refused it."""
        right = self._allotted_proxies(topic) if self._config.each else self.used_proxies
        nodes = tuple(
            proxy.contact
            for peer, proxy in self._proxies.items()
            if (peer in right and proxy.answers.get(topic) is None) or proxy.is_serving(topic)
        )
        return StorageKnown(topic, nodes)

    def _digest(self, topic: TopicId) -> bytes:
        return self._standing.digest(topic) or bytes(16)

    def _reached(self, topic: TopicId) -> dict[ChainKey, int]:
        return {each.author + each.device: each.last for each in self._standing.reached(topic)}


class ProxyState(Struct, eq=False):
    """The state of one proxy, used or not."""

    contact: Contact
    used: bool = False
    up: bool = False
    is_missed: bool = False
    """Whether its link failed or was gone for so long that others stand in."""
    failure: Reason | None = None
    answers: dict[TopicId, Reason | None] = {}
    """Its answer for each stream over this link: None if it serves the stream."""
    pending: dict[int, tuple[TopicId, ...]] = {}
    """Requests that are not answered yet."""
    asked: dict[TopicId, None] = {}
    """Streams that it was told of since the start and may still keep for us."""
    told: dict[TopicId, dict[ChainKey, int]] = {}
    """The chains that it was told have arrived here, and up to where."""
    seen: dict[TopicId, bytes] = {}
    """The digest of our state when it was last told."""
    agreed: dict[TopicId, bytes] = {}
    """The digest of our state when it last said that it knows the same."""
    unsaid: dict[str, None] = {}
    """Streams that we no longer want, of which it was not told yet."""
    kept: int = 0
    most: int = 0

    @property
    def peer(self) -> PeerId:
        """The device key of the proxy."""
        return self.contact.peer

    @property
    def is_usable(self) -> bool:
        """Whether it is used and linked now."""
        return self.up and self.used

    @property
    def is_expected(self) -> bool:
        """Whether streams are requested from it: it is used, and linked or soon will be."""
        return self.used and (self.up or not self.is_missed)

    @property
    def served_topics(self) -> tuple[TopicId, ...]:
        """The streams that it serves us."""
        return tuple(topic for topic, refusal in self.answers.items() if refusal is None)

    @property
    def refused_topics(self) -> tuple[TopicId, ...]:
        """The streams that it refuses."""
        return tuple(topic for topic, refusal in self.answers.items() if refusal is not None)

    def is_serving(self, topic: TopicId) -> bool:
        """Return whether it has said that it serves a stream."""
        return self.answers.get(topic, Reason.UNKNOWN) is None

    def is_asked(self, topic: TopicId) -> bool:
        """Return whether it has answered for a stream over this link, or was asked to."""
        return topic in self.answers or any(topic in topics for topics in self.pending.values())

    def end_service(self) -> tuple[TopicId, ...]:
        """Forget its answers over a link that is gone or unused; return the topics that it served."""
        served = self.served_topics
        self.answers, self.pending, self.seen, self.agreed = {}, {}, {}, {}
        return served

    def forget_stream(self, topic: TopicId) -> None:
        """Forget a stream that is no longer requested from it."""
        self.asked.pop(topic, None)
        self.answers.pop(topic, None)
        for known in (self.told, self.seen, self.agreed):
            known.pop(topic, None)


_TAG = b"linnet/edge/allotment/1"


def order_proxies(topic: TopicId, proxies: Iterable[PeerId]) -> tuple[PeerId, ...]:
    """Return these proxies in the order in which they are asked for a stream, so that none knows all streams.

    By rendezvous hashing (Thaler, Ravishankar 1998): each stream has its own order of all proxies, and is
    given to the first available one. So streams are shared out evenly, a proxy that leaves passes on only its
    own streams, and after a restart, or at another device with the same proxies, every stream is where it
    was.
    """
    return tuple(sorted(proxies, key=lambda peer: sha256(_TAG + topic + peer).digest()))


def allot_proxies(topic: TopicId, proxies: Iterable[PeerId], each: int) -> tuple[PeerId, ...]:
    """Return the proxies to ask for a stream, in the given order; `each` is their number, 0: all of them."""
    able = tuple(proxies)
    if not each or each >= len(able):
        return able
    chosen = order_proxies(topic, able)[:each]
    return tuple(peer for peer in able if peer in chosen)
