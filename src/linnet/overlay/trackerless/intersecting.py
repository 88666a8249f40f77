"""All private set intersections of a node: how often they may be run, and what came of them.

A run tells the other side which of the topics that it can name are ours, up to 256 of them. So runs are
few: one with the same peer in ten minutes, and so many in an hour that others begin; as many, that we
begin and that come so far as to tell something. What came of a run stands for a day.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.intersection import Initiator, Responder, refusal
from linnet.overlay.trackerless.messages import POINTS, Intersect, Intersected, IntersectEnd
from linnet.overlay.trackerless.oblivious import Group
from linnet.overlay.trackerless.tags import TopicKeys, epoch_of
from linnet.trace.records import Kind, Record

HOUR = 3600.0
_NOTE = "intersection"
_PATIENCE = 1.1
"""How much longer than the pause we wait before we ask again: the other's clock began later."""
_LIFE = 10
"""Times that a question may take, for which a run waits: a link may have to be opened first."""


class Outcome(Struct, frozen=True, gc=False):
    """What a run came to."""

    topics: tuple[TopicId, ...]
    """Those in common, proved by both."""
    asked: frozenset[TopicId]
    """Those of ours that were in the run."""
    at: float

    def __repr__(self) -> str:
        return f"Outcome({len(self.topics)} of {len(self.asked)} topics)"


class Step(Struct, frozen=True, gc=False):
    """What a call comes to."""

    send: Intersect | Intersected | IntersectEnd | None = None
    """For the peer."""
    outcome: Outcome | None = None
    """Set once the run is done."""
    fault: Reason | None = None
    """What in the peer's messages was wrong: no honest node sends it."""
    records: tuple[Record, ...] = ()


class Tally(Struct, gc=False):
    """How many runs there were, and of what use."""

    begun: int = 0
    """By us."""
    answered: int = 0
    """Begun by others, and answered."""
    done: int = 0
    empty: int = 0
    """Of those done, the ones without a common topic."""
    refused: int = 0
    """By us."""


class _Hourly:
    """So many in any hour."""

    __slots__ = ("_limit", "_times")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: deque[float] = deque()

    def free(self, now: float) -> int:
        """How many more there may be."""
        while self._times and self._times[0] <= now - HOUR:
            self._times.popleft()
        return self._limit - len(self._times)

    def count(self, now: float) -> None:
        """One more."""
        self._times.append(now)


class Intersecting:
    """The runs of a node with all its peers. It holds at most one in each direction with a peer.

    Everything in it is bounded by the hourly limits and the times for which things are remembered.
    """

    def __init__(self, ours: PeerId, config: TrackerlessConfig, group: Group, entropy: Entropy) -> None:
        self._ours = ours
        self._config = config
        self._group = group
        self._entropy = entropy
        self._asking: dict[PeerId, tuple[float, Initiator]] = {}
        """Runs that we began, with the time until which we wait."""
        self._answering: dict[PeerId, tuple[float, Responder]] = {}
        self._last: dict[PeerId, float] = {}
        """When a run with a peer was begun last, oldest first."""
        self._outcomes: dict[PeerId, Outcome] = {}
        """Oldest first."""
        self._inbound = _Hourly(config.intersect_inbound)
        self._outbound = _Hourly(config.intersect_inbound)
        self.tally = Tally()

    def __len__(self) -> int:
        """Runs that are open."""
        return len(self._asking) + len(self._answering)

    @property
    def remembered(self) -> int:
        """Peers of whom something is remembered."""
        return len(self._last.keys() | self._outcomes.keys())

    def outcome(self, peer: PeerId, now: float) -> Outcome | None:
        """What the last run with a peer came to, while it stands."""
        outcome = self._outcomes.get(peer)
        return outcome if outcome and now < outcome.at + self._config.intersect_memory else None

    def forget(self, peer: PeerId) -> None:
        """What came of the last run stands no more; how long ago it was is not forgotten."""
        self._outcomes.pop(peer, None)

    def may_ask(self, peer: PeerId, topics: Iterable[TopicKeys], now: float) -> bool:
        """Whether a run may be begun now, and could tell something new."""
        if peer == self._ours or peer in self._asking or peer in self._answering:
            return False
        last = self._last.get(peer)
        if last is not None and now < last + self._config.intersect_pause * _PATIENCE:
            return False
        known = self.outcome(peer, now)
        if known is not None and all(keys.topic in known.asked for keys in topics):
            return False
        waiting = sum(not side.is_answered for _, side in self._asking.values())
        return self._outbound.free(now) > waiting

    def begin(self, peer: PeerId, topics: Sequence[TopicKeys], now: float) -> Step:
        """Begin a run with these topics and no others."""
        records = self.expire(now)
        if not self.may_ask(peer, topics, now):
            raise Refused(Reason.TOO_MANY, "an intersection with this peer now is one too many")
        epoch = epoch_of(now, self._config.epoch_days)
        side = Initiator(self._group, self._ours, peer, topics, epoch, self._entropy)
        self._asking[peer] = (now + _LIFE * self._config.request_timeout, side)
        self._began(peer, now)
        self.tally.begun += 1
        return Step(side.message, records=(*records, *_left_out(peer, topics, side.topics)))

    def asked(self, peer: PeerId, message: Intersect, topics: Sequence[TopicKeys], now: float) -> Step:
        """A peer begins a run; these topics and no others take part, and none is as good as some."""
        records = self.expire(now)
        reason = self._objection(peer, message, now)
        if reason is not None:
            return self._refuse(peer, message.nonce, reason, records)
        # If both began at once, ours makes way.
        records += self.failed(peer, Reason.IN_USE)
        # It counts before anything is computed, and whatever comes of it.
        self._inbound.count(now)
        self._began(peer, now)
        try:
            side = Responder(self._group, self._ours, peer, topics, message, self._entropy)
        except RemoteError as error:
            return self._refuse(peer, message.nonce, error.reason, records, error.reason)
        self._answering[peer] = (now + _LIFE * self._config.request_timeout, side)
        self.tally.answered += 1
        return Step(side.message, records=(*records, *_left_out(peer, topics, side.topics)))

    def answered(self, peer: PeerId, message: Intersected, now: float) -> Step:
        """A peer answers what we began."""
        records = self.expire(now)
        side = self._asking.get(peer, (0.0, None))[1]
        if side is None or side.nonce != message.nonce:
            return self._refuse(peer, message.nonce, Reason.STALE, records)
        try:
            end = side.answered(message)
        except RemoteError as error:
            del self._asking[peer]
            return self._refuse(peer, message.nonce, error.reason, records, error.reason)
        self._asking[peer] = (now + _LIFE * self._config.request_timeout, side)
        self._outbound.count(now)
        return Step(end, records=tuple(records))

    def ended(self, peer: PeerId, message: IntersectEnd, now: float) -> Step:
        """A peer ends a run, whoever began it, or refuses one."""
        records = self.expire(now)
        asking = self._asking.get(peer, (0.0, None))[1]
        if asking is not None and asking.nonce == message.nonce:
            del self._asking[peer]
            return self._end_asking(peer, asking, message, records, now)
        answering = self._answering.get(peer, (0.0, None))[1]
        if answering is not None and answering.nonce == message.nonce:
            del self._answering[peer]
            return self._end_answering(peer, answering, message, records, now)
        if message.refused is None:
            records.append(_record(Kind.REJECTED, peer, Reason.STALE))
        # A refusal of what is not open says nothing: both had begun, or it was given up meanwhile.
        return Step(records=tuple(records))

    def failed(self, peer: PeerId, reason: Reason = Reason.LOST) -> list[Record]:
        """The link to a peer is down, or it was given up: open runs with it end."""
        runs = (self._asking.pop(peer, None), self._answering.pop(peer, None))
        return [_record(Kind.DROPPED, peer, reason) for run in runs if run is not None]

    def expire(self, now: float) -> list[Record]:
        """End what has waited too long, and forget what is too old."""
        records: list[Record] = []
        for peer in [peer for peer, (due, _) in self._asking.items() if due <= now]:
            del self._asking[peer]
            records.append(_record(Kind.EXPIRED, peer, Reason.TIMEOUT))
        for peer in [peer for peer, (due, _) in self._answering.items() if due <= now]:
            del self._answering[peer]
            records.append(_record(Kind.EXPIRED, peer, Reason.TIMEOUT))
        self._forget_old(now)
        return records

    def _forget_old(self, now: float) -> None:
        while self._last:
            peer, at = next(iter(self._last.items()))
            if now < at + self._config.intersect_pause * _PATIENCE:
                break
            del self._last[peer]
        while self._outcomes:
            peer, outcome = next(iter(self._outcomes.items()))
            if now < outcome.at + self._config.intersect_memory:
                break
            del self._outcomes[peer]

    def _objection(self, peer: PeerId, message: Intersect, now: float) -> Reason | None:
        """Why we do not answer."""
        if abs(message.epoch - epoch_of(now, self._config.epoch_days)) > 1:
            return Reason.WRONG_EPOCH
        if self._inbound.free(now) <= 0:
            return Reason.PROBING
        asking = self._asking.get(peer, (0.0, None))[1]
        if asking is not None:
            # Both began at once. The lower key's run is the one, and this holds on both sides.
            return Reason.IN_USE if self._ours < peer or asking.is_answered else None
        last = self._last.get(peer)
        if last is not None and now < last + self._config.intersect_pause:
            return Reason.PROBING
        return None

    def _began(self, peer: PeerId, now: float) -> None:
        self._last.pop(peer, None)
        self._last[peer] = now

    def _refuse(
        self,
        peer: PeerId,
        nonce: bytes,
        reason: Reason,
        records: list[Record],
        fault: Reason | None = None,
    ) -> Step:
        self.tally.refused += 1
        rejected = _record(Kind.REJECTED, peer, reason)
        return Step(refusal(nonce, reason), fault=fault, records=(*records, rejected))

    def _end_asking(
        self, peer: PeerId, side: Initiator, message: IntersectEnd, records: list[Record], now: float
    ) -> Step:
        if message.refused is not None:
            return Step(records=(*records, _record(Kind.DROPPED, peer, message.refused)))
        try:
            common = side.ended(message)
        except RemoteError as error:
            # The peer waits for nothing any more, so it is told nothing.
            rejected = _record(Kind.REJECTED, peer, error.reason)
            return Step(fault=error.reason, records=(*records, rejected))
        return Step(outcome=self._done(peer, side.topics, common, now), records=tuple(records))

    def _end_answering(
        self, peer: PeerId, side: Responder, message: IntersectEnd, records: list[Record], now: float
    ) -> Step:
        if message.refused is not None:
            return Step(records=(*records, _record(Kind.DROPPED, peer, message.refused)))
        try:
            end, common = side.ended(message)
        except RemoteError as error:
            return self._refuse(peer, message.nonce, error.reason, records, error.reason)
        return Step(end, self._done(peer, side.topics, common, now), records=tuple(records))

    def _done(
        self, peer: PeerId, asked: tuple[TopicKeys, ...], common: tuple[TopicId, ...], now: float
    ) -> Outcome:
        self.tally.done += 1
        self.tally.empty += not common
        self._outcomes.pop(peer, None)
        outcome = Outcome(common, frozenset(keys.topic for keys in asked), now)
        self._outcomes[peer] = outcome
        return outcome


def guesses(config: TrackerlessConfig, seconds: float = HOUR) -> int:
    """Topics whose names others can try on us in so long a time, all of them together, by runs they begin."""
    return POINTS * config.intersect_inbound * -int(-seconds // HOUR)


def _left_out(peer: PeerId, topics: Sequence[TopicKeys], taken: tuple[TopicKeys, ...]) -> list[Record]:
    left = len({keys.topic: None for keys in topics}) - len(taken)
    if not left:
        return []
    return [Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_MANY, events=left, note=_NOTE)]


def _record(kind: Kind, peer: PeerId, reason: Reason) -> Record:
    return Record(kind, peer=peer, reason=reason, note=_NOTE)
