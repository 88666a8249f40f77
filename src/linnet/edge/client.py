"""The mobile side: a node that takes part in streams through its proxies. Beside them it has links only to
devices on its local networks, which are no business of this module.

For the streams above it is an overlay like others: a proxy that serves a stream is a neighbour in it and
keeps it. Where a client stands in a stream is known by its own chains alone, so a proxy may be changed
at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import AfterCommit, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.chain import ChainKey
from linnet.edge.allotment import allotted
from linnet.edge.effects import ClientEffect, Reached
from linnet.edge.messages import STREAMS_PER_MESSAGE, Serve, Served, Taken, Unserve, Wanted
from linnet.edge.proxy_commands import ProxyStatus
from linnet.edge.proxy_config import EdgeConfig
from linnet.edge.standing import Standing
from linnet.edge.upstream import Upstream
from linnet.overlay.notices import JoinRefused, NeighborDown, StorageKnown
from linnet.trace.records import Kind, Record

OWNER = "edge"
PURPOSE = "proxy"
"""The purpose for which proxies are held; nobody else's counts on the edge."""


class EdgeClient:
    """All streams of a node on the edge, and its proxies. Every call returns effects and notices."""

    def __init__(self, config: EdgeConfig, standing: Standing) -> None:
        self._config = config
        self._standing = standing
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

    def start(self, now: float) -> list[ClientEffect]:
        """Turn to the first proxies."""
        effects: list[ClientEffect] = []
        for proxy in list(self._proxies.values())[: self._config.at_once]:
            effects += self._use(proxy)
        return [*effects, *self._look(), SetTimer(self._config.taken_period, Tick(OWNER, "taken"))]

    def stop(self) -> list[ClientEffect]:
        """The node stops: its streams are left, but what it wants is kept for it."""
        told = self.tell_taken()
        self._is_stopped = True
        return told

    # Streams.

    def join(self, topic: TopicId, stream: str) -> list[ClientEffect]:
        """Want to be served a stream; nothing happens if that is so already."""
        if topic in self._wanted:
            return []
        self._wanted[topic] = stream
        effects: list[ClientEffect] = []
        for proxy in self._proxies.values():
            proxy.unsaid.pop(stream, None)
            if proxy.works and topic in self._share(proxy, [topic]):
                effects += self._ask(proxy, [topic])
        # They are taken to keep it before they say so: an answer may be behind what else they tell.
        return [*effects, self._storage(topic)]

    def leave(self, topic: TopicId, keep: bool) -> list[ClientEffect]:
        """Want no more of a stream; `keep`: the application comes back to it."""
        stream = self._wanted.pop(topic, None)
        if stream is None or self._is_stopped:
            return []
        effects: list[ClientEffect] = []
        for peer, proxy in self._proxies.items():
            is_served, is_told = proxy.serves(topic), not self._config.each or topic in proxy.asked
            proxy.forget(topic)
            if proxy.works and is_told:
                effects.append(Send(peer, Unserve(stream, keep)))
            elif is_told and not keep:
                proxy.unsaid[stream] = None
            if is_served:
                effects.append(NeighborDown(topic, peer))
        return effects

    def served(self, peer: PeerId, message: Served) -> list[ClientEffect]:
        """A proxy says what becomes of streams that it was asked for."""
        proxy = self._proxies.get(peer)
        topics = None if proxy is None else proxy.pending.pop(message.request, None)
        if proxy is None or topics is None or len(topics) != len(message.answers):
            reason = Reason.STALE if topics is None else Reason.MALFORMED
            return [Record(Kind.REJECTED, peer=peer, reason=reason, note="served")]
        proxy.kept, proxy.most = message.kept_bytes, message.most_bytes
        effects: list[ClientEffect] = []
        if not proxy.pending:
            effects.append(CancelTimer(Tick(OWNER, "ask", peer)))
        for topic, answer in zip(topics, message.answers, strict=True):
            if topic not in self._wanted:
                continue
            proxy.answers[topic] = answer.refusal
            if answer.refusal is not None:
                effects += self._refused(proxy, topic, answer.refusal)
                continue
            proxy.told[topic] = self._reached(topic) if answer.same else {}
            if answer.same:
                proxy.agreed[topic] = self._digest(topic)
            effects.append(Reached(topic, peer, answer.same))
        return [*effects, *self._share_out(), *self._look()]

    def compare(self) -> list[ClientEffect]:
        """Tell the proxies what has arrived; and where it is quiet, ask once whether they know more.

        Who hears of a stream from one node alone cannot do without: what that one forgets to tell
        nobody tells.
        """
        effects: list[ClientEffect] = []
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
                    effects += self._tell_taken(proxy, topic)
            effects += self._ask(proxy, quiet)
        return effects

    def tell_taken(self) -> list[ClientEffect]:
        """Tell the proxies what has arrived: the node is about to be away."""
        effects: list[ClientEffect] = []
        for proxy in self._proxies.values():
            for topic in proxy.served:
                effects += self._tell_taken(proxy, topic)
        return effects

    def _tell_taken(self, proxy: Upstream, topic: TopicId) -> list[ClientEffect]:
        told = proxy.told.setdefault(topic, {})
        places = self._standing.reached(topic)
        news = [each for each in places if told.get(each.author + each.device, -1) < each.last]
        told.update((each.author + each.device, each.last) for each in news)
        starts = range(0, len(news), CHAINS_PER_MESSAGE)
        pages = [Taken(topic, tuple(news[start : start + CHAINS_PER_MESSAGE])) for start in starts]
        return [AfterCommit((Send(proxy.contact.peer, page),)) for page in pages]

    # Links.

    def link_up(self, peer: PeerId, is_fit: bool = True) -> list[ClientEffect]:
        """A proxy is there: ask for all that is wanted, if it is fit to be one."""
        proxy = self._proxies.get(peer)
        if proxy is None:
            return []
        if not is_fit:
            proxy.failure = Reason.UNSUPPORTED
            note = "it knows nothing of proxies"
            unfit = Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note)
            return [unfit, *self._fail_over()]
        proxy.up, proxy.is_missed, proxy.failure = True, False, None
        return [*self._greet(proxy), *self._look()] if proxy.used else []

    def link_down(self, peer: PeerId, reason: Reason) -> list[ClientEffect]:
        """A proxy is gone; after a while the next is turned to."""
        proxy = self._proxies.get(peer)
        if proxy is None or not proxy.up:
            return []
        proxy.up, proxy.failure = False, reason
        down: list[ClientEffect] = [NeighborDown(topic, peer) for topic in proxy.part()]
        return [*down, CancelTimer(Tick(OWNER, "ask", peer)), *self._look()]

    def dial_failed(self, peer: PeerId, reason: Reason) -> list[ClientEffect]:
        """A proxy does not answer: the next is turned to at once."""
        proxy = self._proxies.get(peer)
        if proxy is None or proxy.up:
            return []
        proxy.failure, proxy.is_missed = reason, True
        return [*self._fail_over(), *self._share_out()]

    def woke(self) -> list[ClientEffect]:
        """The node slept, and its links are opened again: nobody was missed."""
        for proxy in self._proxies.values():
            proxy.is_missed = False
        return self._look()

    def fired(self, tick: Tick) -> list[ClientEffect]:
        """A timer of ours has run out."""
        match tick.what:
            case "failover":
                return self._stand_in()
            case "taken":
                return [*self.compare(), SetTimer(self._config.taken_period, tick)]
            case "retry":
                return self._ask_refused()
            case _:
                proxy = self._proxies.get(PeerId(tick.key))
                if proxy is None or not proxy.works:
                    return []
                lost, proxy.pending = proxy.pending, {}
                topics = (topic for asked in lost.values() for topic in asked if topic in self._wanted)
                return self._ask(proxy, dict.fromkeys(topics))

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

    def _ask(self, proxy: Upstream, topics: Iterable[TopicId]) -> list[ClientEffect]:
        """Ask a proxy whose link is open for streams, and again if no answer comes."""
        asked = list(topics)
        peer = proxy.contact.peer
        effects: list[ClientEffect] = []
        for start in range(0, len(asked), STREAMS_PER_MESSAGE):
            part = tuple(asked[start : start + STREAMS_PER_MESSAGE])
            self._request += 1
            proxy.pending[self._request] = part
            proxy.asked.update(dict.fromkeys(part))
            wanted = tuple(Wanted(self._wanted[each], self._digest(each)) for each in part)
            effects.append(Send(peer, Serve(self._request, wanted)))
        if effects:
            effects.append(SetTimer(self._config.answer_timeout, Tick(OWNER, "ask", peer)))
        return effects

    def _refused(self, proxy: Upstream, topic: TopicId, reason: Reason) -> list[ClientEffect]:
        """A proxy does not serve a stream: another may, and it is asked again later."""
        peer = proxy.contact.peer
        note = f"{self._wanted[topic]}: the proxy does not serve it"
        effects: list[ClientEffect] = [
            Record(Kind.REJECTED, topic, peer=peer, reason=reason, note=note),
            SetTimer(self._config.retry_period, Tick(OWNER, "retry")),
        ]
        others = [each for each in self._proxies.values() if each.used and each is not proxy]
        if all(each.answers.get(topic) is not None for each in others):
            effects.append(JoinRefused(topic, reason))
        effects.append(self._storage(topic))
        return effects

    def _ask_refused(self) -> list[ClientEffect]:
        effects: list[ClientEffect] = []
        for proxy in self._proxies.values():
            if proxy.up:
                effects += self._ask(proxy, [topic for topic in proxy.refused if topic in self._wanted])
        return effects

    def _look(self) -> list[ClientEffect]:
        """Let go of proxies that are not needed any more, or see soon whether another one is."""
        up = [proxy for proxy in self._proxies.values() if proxy.works]
        if len(up) < self._enough(up):
            spare = any(not proxy.used or self._config.each for proxy in self._proxies.values())
            return [SetTimer(self._config.failover_after, Tick(OWNER, "failover"))] if spare else []
        effects: list[ClientEffect] = [CancelTimer(Tick(OWNER, "failover"))]
        keep = up[: self._enough(up)]
        for proxy in self._proxies.values():
            if proxy.used and proxy not in keep:
                effects += self._let_go(proxy)
        return [*effects, *self._share_out()] if self._config.each else effects

    def _enough(self, up: list[Upstream]) -> int:
        """How many proxies are wanted: one more for each that refuses something."""
        return self._config.at_once + sum(any(proxy.answers.values()) for proxy in up)

    def _stand_in(self) -> list[ClientEffect]:
        """Some proxies are gone for too long: let others have their streams, and use the next in line."""
        for proxy in self._proxies.values():
            proxy.is_missed = proxy.used and not proxy.up
        return [*self._fail_over(), *self._share_out()]

    def _fail_over(self) -> list[ClientEffect]:
        """Use the next proxy in line."""
        used = [proxy for proxy in self._proxies.values() if proxy.used]
        up = [proxy for proxy in used if proxy.up]
        spare = next((proxy for proxy in self._proxies.values() if not proxy.used), None)
        if spare is None or len(up) >= self._enough(up):
            return []
        peer = spare.contact.peer
        note = Record(Kind.CONTROL, peer=peer, note="turned to another proxy")
        return [note, *self._use(spare), *map(self._storage, self._wanted), *self._look()]

    def _use(self, proxy: Upstream) -> list[ClientEffect]:
        proxy.used, proxy.is_missed = True, False
        contact = proxy.contact
        hold = Hold(contact.peer, contact.hints, PURPOSE)
        return [hold, *self._greet(proxy)] if proxy.up else [hold]

    def _greet(self, proxy: Upstream) -> list[ClientEffect]:
        """Say what is wanted no longer, and what is."""
        unsaid, proxy.unsaid = proxy.unsaid, {}
        ended = [Send(proxy.contact.peer, Unserve(stream, False)) for stream in unsaid]
        return [*ended, *self._share_out()]

    # Sharing out.

    def _share(self, proxy: Upstream, topics: Iterable[TopicId]) -> list[TopicId]:
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

    def _share_out(self) -> list[ClientEffect]:
        """Ask for what was not asked for yet; where another has a stream by now, let go of it elsewhere."""
        effects: list[ClientEffect] = []
        for proxy in self._proxies.values():
            if proxy.works:
                new = self._share(proxy, (each for each in self._wanted if not proxy.is_asked(each)))
                effects += self._ask(proxy, new)
                effects += map(self._storage, new if self._config.each else ())
        if self._config.each:
            for topic, stream in self._wanted.items():
                effects += self._hand_over(topic, stream)
        return effects

    def _hand_over(self, topic: TopicId, stream: str) -> list[ClientEffect]:
        """Let those go who stood in for others, once these serve the stream themselves."""
        right = self._allotted(topic)
        if not all(self._proxies[peer].serves(topic) for peer in right):
            return []
        effects: list[ClientEffect] = []
        for peer, proxy in self._proxies.items():
            if proxy.works and proxy.serves(topic) and peer not in right:
                proxy.forget(topic)
                effects += [Send(peer, Unserve(stream, False)), NeighborDown(topic, peer)]
        return [*effects, self._storage(topic)] if effects else []

    def _let_go(self, proxy: Upstream) -> list[ClientEffect]:
        proxy.used = False
        peer = proxy.contact.peer
        down: list[ClientEffect] = [NeighborDown(topic, peer) for topic in proxy.part()]
        ask = CancelTimer(Tick(OWNER, "ask", peer))
        return [*down, ask, Release(peer, PURPOSE), *map(self._storage, self._wanted)]

    def _storage(self, topic: TopicId) -> StorageKnown:
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
