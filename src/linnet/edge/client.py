"""The mobile side: a node that takes part in streams through its proxies. Beside them it has links only to
devices on its local networks, which are no business of this module.

For the streams above it is an overlay like others: a proxy that serves a stream is a neighbour in it and
keeps it. Where a client stands in a stream is known by its own chains alone, so a proxy may be changed
at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import AfterCommit, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.chain import ChainKey
from linnet.edge.effects import ClientEffect, Reached
from linnet.edge.messages import STREAMS_PER_MESSAGE, Serve, Served, Taken, Unserve, Wanted
from linnet.edge.proxy_commands import ProxyStatus
from linnet.edge.proxy_config import EdgeConfig
from linnet.edge.standing import Standing
from linnet.overlay.notices import JoinRefused, NeighborDown, StorageKnown
from linnet.trace.records import Kind, Record

OWNER = "edge"
PURPOSE = "proxy"
"""The purpose for which proxies are held; nobody else's counts on the edge."""


class _Proxy:
    """One of our proxies, used or not."""

    __slots__ = (
        "agreed",
        "answers",
        "contact",
        "failure",
        "kept",
        "most",
        "pending",
        "seen",
        "told",
        "unsaid",
        "up",
        "used",
    )

    def __init__(self, contact: Contact) -> None:
        self.contact = contact
        self.used = False
        self.up = False
        self.failure: Reason | None = None
        self.answers: dict[TopicId, Reason | None] = {}
        """What it said of each stream over this link: None if it serves it."""
        self.pending: dict[int, tuple[TopicId, ...]] = {}
        """Questions that are not answered."""
        self.told: dict[TopicId, dict[ChainKey, int]] = {}
        """What it knows to have arrived here."""
        self.seen: dict[TopicId, bytes] = {}
        """How far we were when it was last told."""
        self.agreed: dict[TopicId, bytes] = {}
        """How far we were when it last said that it knows the same."""
        self.unsaid: dict[str, None] = {}
        """Streams that we want no longer, which it has not heard yet."""
        self.kept = self.most = 0


class EdgeClient:
    """All streams of a node on the edge, and its proxies. Every call returns effects and notices."""

    def __init__(self, config: EdgeConfig, standing: Standing) -> None:
        self._config = config
        self._standing = standing
        self._proxies = {contact.peer: _Proxy(contact) for contact in config.proxies}
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
            if proxy.up and proxy.used:
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
            for known in (proxy.told, proxy.seen, proxy.agreed):
                known.pop(topic, None)
            if proxy.up and proxy.used:
                effects.append(Send(peer, Unserve(stream, keep)))
            elif not keep:
                proxy.unsaid[stream] = None
            if proxy.answers.pop(topic, Reason.UNKNOWN) is None:
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
        return [*effects, *self._look()]

    def compare(self) -> list[ClientEffect]:
        """Tell the proxies what has arrived; and where it is quiet, ask once whether they know more.

        Who hears of a stream from one node alone cannot do without: what that one forgets to tell
        nobody tells.
        """
        effects: list[ClientEffect] = []
        for proxy in self._proxies.values():
            quiet: list[TopicId] = []
            for topic, refusal in proxy.answers.items():
                digest = self._digest(topic)
                if refusal is not None or proxy.agreed.get(topic) == digest:
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
            for topic, refusal in proxy.answers.items():
                effects += self._tell_taken(proxy, topic) if refusal is None else []
        return effects

    def _tell_taken(self, proxy: _Proxy, topic: TopicId) -> list[ClientEffect]:
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
        proxy.up, proxy.failure = True, None
        return [*self._greet(proxy), *self._look()] if proxy.used else []

    def link_down(self, peer: PeerId, reason: Reason) -> list[ClientEffect]:
        """A proxy is gone; after a while the next is turned to."""
        proxy = self._proxies.get(peer)
        if proxy is None or not proxy.up:
            return []
        served = [topic for topic, refusal in proxy.answers.items() if refusal is None]
        proxy.up, proxy.failure = False, reason
        proxy.answers, proxy.pending, proxy.seen, proxy.agreed = {}, {}, {}, {}
        down: list[ClientEffect] = [NeighborDown(topic, peer) for topic in served]
        return [*down, CancelTimer(Tick(OWNER, "ask", peer)), *self._look()]

    def dial_failed(self, peer: PeerId, reason: Reason) -> list[ClientEffect]:
        """A proxy does not answer: the next is turned to at once."""
        proxy = self._proxies.get(peer)
        if proxy is None or proxy.up:
            return []
        proxy.failure = reason
        return self._fail_over()

    def fired(self, tick: Tick) -> list[ClientEffect]:
        """A timer of ours has run out."""
        match tick.what:
            case "failover":
                return self._fail_over()
            case "taken":
                return [*self.compare(), SetTimer(self._config.taken_period, tick)]
            case "retry":
                return self._ask_refused()
            case _:
                proxy = self._proxies.get(PeerId(tick.key))
                if proxy is None or not (proxy.up and proxy.used):
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
                sum(refusal is None for refusal in proxy.answers.values()),
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

    def _ask(self, proxy: _Proxy, topics: Iterable[TopicId]) -> list[ClientEffect]:
        """Ask a proxy whose link is open for streams, and again if no answer comes."""
        asked = list(topics)
        peer = proxy.contact.peer
        effects: list[ClientEffect] = []
        for start in range(0, len(asked), STREAMS_PER_MESSAGE):
            part = tuple(asked[start : start + STREAMS_PER_MESSAGE])
            self._request += 1
            proxy.pending[self._request] = part
            wanted = tuple(Wanted(self._wanted[each], self._digest(each)) for each in part)
            effects.append(Send(peer, Serve(self._request, wanted)))
        if effects:
            effects.append(SetTimer(self._config.answer_timeout, Tick(OWNER, "ask", peer)))
        return effects

    def _refused(self, proxy: _Proxy, topic: TopicId, reason: Reason) -> list[ClientEffect]:
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
            refused = [topic for topic, refusal in proxy.answers.items() if refusal is not None]
            if proxy.up:
                effects += self._ask(proxy, [topic for topic in refused if topic in self._wanted])
        return effects

    def _look(self) -> list[ClientEffect]:
        """Let go of proxies that are not needed any more, or see soon whether another one is."""
        up = [proxy for proxy in self._proxies.values() if proxy.up and proxy.used]
        if len(up) < self._enough(up):
            spare = any(not proxy.used for proxy in self._proxies.values())
            return [SetTimer(self._config.failover_after, Tick(OWNER, "failover"))] if spare else []
        effects: list[ClientEffect] = [CancelTimer(Tick(OWNER, "failover"))]
        keep = up[: self._enough(up)]
        for proxy in self._proxies.values():
            if proxy.used and proxy not in keep:
                effects += self._let_go(proxy)
        return effects

    def _enough(self, up: list[_Proxy]) -> int:
        """How many proxies are wanted: one more for each that refuses something."""
        return self._config.at_once + sum(any(proxy.answers.values()) for proxy in up)

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

    def _use(self, proxy: _Proxy) -> list[ClientEffect]:
        proxy.used = True
        contact = proxy.contact
        hold = Hold(contact.peer, contact.hints, PURPOSE)
        return [hold, *self._greet(proxy)] if proxy.up else [hold]

    def _greet(self, proxy: _Proxy) -> list[ClientEffect]:
        """Say what is wanted no longer, and what is."""
        unsaid, proxy.unsaid = proxy.unsaid, {}
        ended = [Send(proxy.contact.peer, Unserve(stream, False)) for stream in unsaid]
        return [*ended, *self._ask(proxy, self._wanted)]

    def _let_go(self, proxy: _Proxy) -> list[ClientEffect]:
        proxy.used = False
        peer = proxy.contact.peer
        served = [topic for topic, refusal in proxy.answers.items() if refusal is None]
        down: list[ClientEffect] = [NeighborDown(topic, peer) for topic in served]
        proxy.answers, proxy.pending, proxy.seen, proxy.agreed = {}, {}, {}, {}
        ask = CancelTimer(Tick(OWNER, "ask", peer))
        return [*down, ask, Release(peer, PURPOSE), *map(self._storage, self._wanted)]

    def _storage(self, topic: TopicId) -> StorageKnown:
        """Who keeps a stream for us: the proxies in use, as long as they have not refused it."""
        nodes = tuple(
            proxy.contact
            for proxy in self._proxies.values()
            if proxy.used and proxy.answers.get(topic) is None
        )
        return StorageKnown(topic, nodes)

    def _digest(self, topic: TopicId) -> bytes:
        return self._standing.digest(topic) or bytes(16)

    def _reached(self, topic: TopicId) -> dict[ChainKey, int]:
        return {each.author + each.device: each.last for each in self._standing.reached(topic)}
