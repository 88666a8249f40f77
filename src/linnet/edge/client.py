"""The mobile side: a node that takes part in streams through its proxies. Beside them it has links only to
devices on its local networks, which are no business of this module.

For the streams above it is an overlay like others: a proxy that serves a stream is a neighbour in it and
keeps it. Where a client stands in a stream is known by its own chains alone, so a proxy may be changed
at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.chain import ChainKey
from linnet.edge.allotment import allotted
from linnet.edge.messages import STREAMS_PER_MESSAGE, Serve, Served, Taken, Unserve, Wanted
from linnet.edge.notices import Reached, ServiceAsked
from linnet.edge.proxy_commands import ProxyStatus
from linnet.edge.proxy_config import EdgeConfig
from linnet.edge.standing import Standing
from linnet.edge.upstream import Upstream
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import JoinRefused, NeighborDown, StorageKnown
from linnet.trace.records import Kind, Record

PURPOSE = "proxy"
"""The purpose for which proxies are held; nobody else's counts on the edge."""


class FailoverDue(Timer, frozen=True):
    """Links to proxies were missing for so long that others are to stand in."""


class AnswerDue(Timer, frozen=True):
    """A proxy had the time to answer what it was asked for."""

    peer: PeerId


class RetryDue(Timer, frozen=True):
    """What proxies refused is to be asked of them again."""


class TakenDue(Timer, frozen=True):
    """The proxies are to be told what has arrived."""


class EdgeClient:
    """All streams of a node on the edge, and its proxies."""

    def __init__(self, config: EdgeConfig, standing: Standing, out: Outbox) -> None:
        self._config = config
        self._standing = standing
        self._out = out
        self._proxies = {contact.peer: Upstream(contact) for contact in config.proxies}
        self._wanted: dict[TopicId, str] = {}
        self._request = 0
        self._is_stopped = False

    @property
    def used(self) -> tuple[PeerId, ...]:
        """The proxies that are used now, whether their links are open or not."""
        return tuple(peer for peer, proxy in self._proxies.items() if proxy.used)

    @property
    def all(self) -> tuple[PeerId, ...]:
        """Every proxy that this node has."""
        return tuple(self._proxies)

    def start(self) -> None:
        """Turn to the first proxies."""
        for proxy in list(self._proxies.values())[: self._config.at_once]:
            self._use_proxy(proxy)
        self._review_proxies()
        self._out.set_timer(self._config.taken_period, TakenDue())

    def stop(self) -> None:
        """The node stops: its streams are left, but what it wants is kept for it."""
        self.tell_taken()
        self._is_stopped = True

    # Streams.

    def join(self, topic: TopicId, stream: str) -> StorageKnown | None:
        """Want to be served a stream; returns who keeps it for us, or None if it was wanted already."""
        if topic in self._wanted:
            return None
        self._wanted[topic] = stream
        for proxy in self._proxies.values():
            proxy.unsaid.pop(stream, None)
            if proxy.works and topic in self._share_of(proxy, [topic]):
                self._ask_proxy(proxy, [topic])
        # They are taken to keep it before they say so: an answer may be behind what else they tell.
        return self._storage_of(topic)

    def leave(self, topic: TopicId, keep: bool) -> list[NeighborDown]:
        """Want no more of a stream; `keep`: the application comes back to it. Returns who served it."""
        stream = self._wanted.pop(topic, None)
        if stream is None or self._is_stopped:
            return []
        down: list[NeighborDown] = []
        for peer, proxy in self._proxies.items():
            is_served, is_told = proxy.serves(topic), not self._config.each or topic in proxy.asked
            proxy.forget(topic)
            if proxy.works and is_told:
                self._out.send(peer, Unserve(stream, keep))
            elif is_told and not keep:
                proxy.unsaid[stream] = None
            if is_served:
                down.append(NeighborDown(topic, peer))
        return down

    def handle_served(self, peer: PeerId, message: Served) -> None:
        """A proxy says what becomes of streams that it was asked for."""
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
        """Tell the proxies what has arrived; and where it is quiet, ask once whether they know more.

        Who hears of a stream from one node alone cannot do without: what that one forgets to tell
        nobody tells.
        """
        for proxy in self._proxies.values():
            quiet: list[TopicId] = []
            for topic in proxy.served:
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
            for topic in proxy.served:
                self._tell_proxy_taken(proxy, topic)

    def _tell_proxy_taken(self, proxy: Upstream, topic: TopicId) -> None:
        told = proxy.told.setdefault(topic, {})
        places = self._standing.reached(topic)
        news = [each for each in places if told.get(each.author + each.device, -1) < each.last]
        told.update((each.author + each.device, each.last) for each in news)
        for start in range(0, len(news), CHAINS_PER_MESSAGE):
            page = Taken(topic, tuple(news[start : start + CHAINS_PER_MESSAGE]))
            self._out.committed.send(proxy.contact.peer, page)

    # Links.

    def handle_link_up(self, peer: PeerId, is_fit: bool = True) -> None:
        """A proxy is there: ask for all that is wanted, if it is fit to be one."""
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
        """A proxy is gone; after a while the next is turned to."""
        proxy = self._proxies.get(peer)
        if proxy is None or not proxy.up:
            return
        proxy.up, proxy.failure = False, reason
        self._part_from(proxy)
        self._review_proxies()

    def handle_dial_failed(self, peer: PeerId, reason: Reason) -> None:
        """A proxy does not answer: the next is turned to at once."""
        proxy = self._proxies.get(peer)
        if proxy is None or proxy.up:
            return
        proxy.failure, proxy.is_missed = reason, True
        self._fail_over()
        self._share_streams()

    def forgive_proxies(self) -> None:
        """The node slept, and its links are opened again: nobody was missed."""
        for proxy in self._proxies.values():
            proxy.is_missed = False
        self._review_proxies()

    # Time.

    def stand_in(self) -> None:
        """Some proxies are gone for too long: let others have their streams, and use the next in line."""
        for proxy in self._proxies.values():
            proxy.is_missed = proxy.used and not proxy.up
        self._fail_over()
        self._share_streams()

    def ask_again(self, peer: PeerId) -> None:
        """A proxy did not answer in time."""
        proxy = self._proxies.get(peer)
        if proxy is None or not proxy.works:
            return
        lost, proxy.pending = proxy.pending, {}
        topics = (topic for asked in lost.values() for topic in asked if topic in self._wanted)
        self._ask_proxy(proxy, dict.fromkeys(topics))

    def ask_refused(self) -> None:
        """Ask proxies again for what they refused."""
        for proxy in self._proxies.values():
            if proxy.up:
                self._ask_proxy(proxy, [topic for topic in proxy.refused if topic in self._wanted])

    def status(self) -> tuple[ProxyStatus, ...]:
        """Every proxy."""
        return tuple(
            ProxyStatus(
                peer,
                proxy.contact.hints,
                proxy.used,
                proxy.up,
                len(proxy.served),
                tuple(
                    (self._wanted[topic], refusal)
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

    def _ask_proxy(self, proxy: Upstream, topics: Iterable[TopicId]) -> None:
        """Ask a proxy whose link is open for streams, and again if no answer comes."""
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

    def _note_refusal(self, proxy: Upstream, topic: TopicId, reason: Reason) -> None:
        """A proxy does not serve a stream: another may, and it is asked again later."""
        note = f"{self._wanted[topic]}: the proxy does not serve it"
        self._out.record(Record(Kind.REJECTED, topic, peer=proxy.contact.peer, reason=reason, note=note))
        self._out.set_timer(self._config.retry_period, RetryDue())
        others = [each for each in self._proxies.values() if each.used and each is not proxy]
        if all(each.answers.get(topic) is not None for each in others):
            self._out.notify(JoinRefused(topic, reason))
        self._out.notify(self._storage_of(topic))

    def _review_proxies(self) -> None:
        """Let go of proxies that are not needed any more, or see soon whether another one is."""
        up = [proxy for proxy in self._proxies.values() if proxy.works]
        if len(up) < self._enough(up):
            if any(not proxy.used or self._config.each for proxy in self._proxies.values()):
                self._out.set_timer(self._config.failover_after, FailoverDue())
            return
        self._out.cancel_timer(FailoverDue())
        keep = up[: self._enough(up)]
        for proxy in self._proxies.values():
            if proxy.used and proxy not in keep:
                self._let_go(proxy)
        if self._config.each:
            self._share_streams()

    def _enough(self, up: list[Upstream]) -> int:
        """How many proxies are wanted: one more for each that refuses something."""
        return self._config.at_once + sum(any(proxy.answers.values()) for proxy in up)

    def _fail_over(self) -> None:
        """Use the next proxy in line."""
        used = [proxy for proxy in self._proxies.values() if proxy.used]
        up = [proxy for proxy in used if proxy.up]
        spare = next((proxy for proxy in self._proxies.values() if not proxy.used), None)
        if spare is None or len(up) >= self._enough(up):
            return
        self._out.record(Record(Kind.CONTROL, peer=spare.contact.peer, note="turned to another proxy"))
        self._use_proxy(spare)
        self._tell_storage(self._wanted)
        self._review_proxies()

    def _use_proxy(self, proxy: Upstream) -> None:
        proxy.used, proxy.is_missed = True, False
        contact = proxy.contact
        self._out.hold(contact.peer, contact.hints, PURPOSE)
        if proxy.up:
            self._greet_proxy(proxy)

    def _greet_proxy(self, proxy: Upstream) -> None:
        """Say what is wanted no longer, and what is."""
        unsaid, proxy.unsaid = proxy.unsaid, {}
        for stream in unsaid:
            self._out.send(proxy.contact.peer, Unserve(stream, False))
        self._share_streams()

    # Sharing out.

    def _share_of(self, proxy: Upstream, topics: Iterable[TopicId]) -> list[TopicId]:
        """Those of these streams that a proxy is to be asked for."""
        return [topic for topic in topics if proxy.peer in self._allotted(topic)]

    def _allotted(self, topic: TopicId) -> tuple[PeerId, ...]:
        """The proxies that a stream is asked of, of those that are there or soon will be."""
        able = (
            peer
            for peer, proxy in self._proxies.items()
            if proxy.is_expected and proxy.answers.get(topic) is None
        )
        return allotted(topic, able, self._config.each)

    def _share_streams(self) -> None:
        """Ask for what was not asked for yet; where another has a stream by now, let go of it elsewhere."""
        for proxy in self._proxies.values():
            if proxy.works:
                new = self._share_of(proxy, (each for each in self._wanted if not proxy.is_asked(each)))
                self._ask_proxy(proxy, new)
                self._tell_storage(new if self._config.each else ())
        if self._config.each:
            for topic, stream in self._wanted.items():
                self._hand_over(topic, stream)

    def _hand_over(self, topic: TopicId, stream: str) -> None:
        """Let those go who stood in for others, once these serve the stream themselves."""
        right = self._allotted(topic)
        if not all(self._proxies[peer].serves(topic) for peer in right):
            return
        is_handed = False
        for peer, proxy in self._proxies.items():
            if proxy.works and proxy.serves(topic) and peer not in right:
                is_handed = True
                proxy.forget(topic)
                self._out.send(peer, Unserve(stream, False))
                self._out.notify(NeighborDown(topic, peer))
        if is_handed:
            self._tell_storage([topic])

    def _let_go(self, proxy: Upstream) -> None:
        proxy.used = False
        self._part_from(proxy)
        self._out.release(proxy.contact.peer, PURPOSE)
        self._tell_storage(self._wanted)

    def _part_from(self, proxy: Upstream) -> None:
        """It serves nothing any more, and no answer of it is waited for."""
        peer = proxy.contact.peer
        for topic in proxy.part():
            self._out.notify(NeighborDown(topic, peer))
        self._out.cancel_timer(AnswerDue(peer))

    def _tell_storage(self, topics: Iterable[TopicId]) -> None:
        for topic in topics:
            self._out.notify(self._storage_of(topic))

    def _storage_of(self, topic: TopicId) -> StorageKnown:
        """Who keeps a stream for us: the proxies in use, as long as they have not refused it."""
        right = self._allotted(topic) if self._config.each else self.used
        nodes = tuple(
            proxy.contact
            for peer, proxy in self._proxies.items()
            if (peer in right and proxy.answers.get(topic) is None) or proxy.serves(topic)
        )
        return StorageKnown(topic, nodes)

    def _digest(self, topic: TopicId) -> bytes:
        return self._standing.digest(topic) or bytes(16)

    def _reached(self, topic: TopicId) -> dict[ChainKey, int]:
        return {each.author + each.device: each.last for each in self._standing.reached(topic)}
