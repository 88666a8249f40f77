"""A node without trackers: rounds of gossip, and what comes of them for its topics.

In each round a node pulls a few peers from someone of its sample, asks someone who is alike for more of
the kind, tells someone on its rings who stands beside it, may begin a private intersection with someone
who seems to share topics, and sends out searches for topics of which it knows too few members. All the
parts are passive; this is where questions are asked, links held and time passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from random import Random
from typing import assert_never

from linnet.core.effects import Blame, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Received, TimerFired
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.identity.keys import SigningKey
from linnet.overlay.overlays import TrackerlessEffect, TrackerlessInput
from linnet.overlay.trackerless import errands
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.trackerless.errands import Errand
from linnet.overlay.trackerless.gossip import Gossip
from linnet.overlay.trackerless.messages import (
    Alike,
    AskAlike,
    Beside,
    Intersect,
    Intersected,
    IntersectEnd,
    Pull,
    Pulled,
    RingAsk,
    RingTell,
    Seek,
    Sought,
    TrackerlessMessage,
)
from linnet.overlay.trackerless.oblivious import RISTRETTO, Group
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.overlay.trackerless.topics import Topics
from linnet.trace.records import Kind, Record

_ROUND = "round"
_JITTER = 0.2
_HURRY = 0.1


class Trackerless:
    """All that a node does without trackers. Every call returns effects and notices, in one order."""

    def __init__(
        self,
        key: SigningKey,
        config: TrackerlessConfig,
        cells: Cells,
        rng: Random,
        entropy: Entropy,
        listens: tuple[str, ...] = (),
        group: Group = RISTRETTO,
        check: DescriptorCheck = check_descriptor,
    ) -> None:
        self._config = config
        self._rng = rng
        self._links: dict[PeerId, None] = {}
        self.gossip = Gossip(key, config, cells, rng, entropy, listens, self._links, check)
        self.topics = Topics(self.gossip, group, entropy)
        self._rounds = 0
        self._is_on = False

    # What the node wants.

    def start(self, bootstrap: Iterable[Contact], now: float) -> list[TrackerlessEffect]:
        """Begin with whoever was known before, and with these."""
        self._is_on = True
        effects: list[TrackerlessEffect] = [*self.gossip.begin(bootstrap, now)]
        return [*effects, self._timer(0.1)]

    def stop(self, now: float) -> None:
        """Write down who is known."""
        self._is_on = False
        self.gossip.remember(now)
        self.topics.remember()

    def join(
        self,
        topic: TopicId,
        keeps: bool,
        now: float,
        contacts: Iterable[Contact] = (),
        secret: bytes | None = None,
    ) -> list[TrackerlessEffect]:
        """Want neighbours in a topic, which nobody learns of who does not know it.

        `contacts` may be members: those named in an invitation, or met before.
        """
        return self.topics.join(topic, keeps, now, contacts, secret)

    def leave(self, topic: TopicId, now: float) -> list[TrackerlessEffect]:
        """Want none any more."""
        return self.topics.leave(topic, now)

    def know(self, contacts: Iterable[Contact], now: float) -> list[TrackerlessEffect]:
        """There are these nodes: an address from the user, or from the local network."""
        return [*self.gossip.approach(contacts, now)]

    def local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> list[TrackerlessEffect]:
        """A device is on a local network with us, on which these topics may be known."""
        return self.topics.local(contact, allowed, now)

    def not_local(self, peer: PeerId) -> None:
        """A device is on no local network with us any more."""
        self.topics.not_local(peer)

    # What is asked of it.

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """The neighbours of a topic whose links are open."""
        return self.topics.neighbors(topic)

    def targets(self, topic: TopicId, sources: Collection[PeerId], up: Sequence[PeerId]) -> Sequence[PeerId]:
        """To whom an event is passed on, of those who are up."""
        return self.topics.targets(topic, sources, up)

    def status(self, now: float) -> TrackerlessStatus:
        """How it stands."""
        return self.topics.status(self._rounds, now)

    # What happens.

    def handle(self, event: TrackerlessInput, now: float) -> list[TrackerlessEffect]:
        """Apply one input; the caller performs the effects, in order."""
        match event:
            case Received(peer, message):
                try:
                    return self._received(peer, message, now)
                except RemoteError as error:
                    return self._offended(peer, message, error, now)
            case LinkUp(peer):
                self._links[peer] = None
                return [*self.gossip.errands.linked(peer), *self.topics.linked(peer, now)]
            case LinkDown(peer, _):
                self._links.pop(peer, None)
                return self._lost(peer, False, now)
            case DialFailed(peer, _):
                return [] if peer in self._links else self._lost(peer, True, now)
            case TimerFired(tick):
                return self._fired(tick, now)
            case _:
                assert_never(event)

    def _received(self, peer: PeerId, message: TrackerlessMessage, now: float) -> list[TrackerlessEffect]:
        match message:
            case Pull():
                return [*self.gossip.asked(peer, message, (), now)]
            case AskAlike():
                return [*self.gossip.asked(peer, message, self.topics.members(), now)]
            case Pulled() | Alike():
                return [*self.gossip.told(peer, message, now), *self.topics.introduced(peer, now)]
            case Intersect() | Intersected() | IntersectEnd():
                return self.topics.on_intersection(peer, message, now)
            case Seek():
                return self.topics.on_seek(peer, message, now)
            case Sought():
                return self.topics.on_sought(peer, message, now)
            case RingAsk():
                return self.topics.on_ring_ask(peer, message, now)
            case RingTell():
                return self.topics.on_ring_tell(peer, message, now)
            case Beside():
                return self.topics.on_beside(peer, message, now)
            case _:
                assert_never(message)

    def _offended(
        self, peer: PeerId, message: TrackerlessMessage, error: RemoteError, now: float
    ) -> list[TrackerlessEffect]:
        """A peer sent what no honest one does: it is named, and left out for a day if it was grave."""
        name = type(message).__name__
        record = Record(Kind.REJECTED, peer=peer, reason=error.reason, note=f"{name}: {error.detail}"[:200])
        effects: list[TrackerlessEffect] = [record, Blame(peer, error.reason)]
        if error.reason in (Reason.BAD_SIGNATURE, Reason.IMPLAUSIBLE_FILTER, Reason.NOT_IN_TOPIC):
            self.gossip.offence(peer, now)
            effects += self.topics.shunned(peer, now)
        return effects

    def _lost(self, peer: PeerId, is_dead: bool, now: float) -> list[TrackerlessEffect]:
        failed, effects = self.gossip.errands.lost(peer)
        return [*effects, *self._failures(failed, now), *self.topics.lost(peer, is_dead, now)]

    def _failures(self, failed: Iterable[Errand], now: float) -> list[TrackerlessEffect]:
        effects: list[TrackerlessEffect] = []
        for errand in failed:
            match errand.message:
                case Pull() | AskAlike():
                    effects += self.gossip.failed(errand.peer, errand.message, now)
                case RingAsk():
                    effects += self.topics.silent(errand.peer, now)
                case Intersect():
                    effects += self.topics.no_intersection(errand.peer)
                case Seek() | Sought():
                    effects += self.topics.no_way(errand.peer, errand.message, now)
                case _:
                    assert_never(errand.message)
        return effects

    def _fired(self, tick: Tick, now: float) -> list[TrackerlessEffect]:
        if tick.what != _ROUND:
            failed, effects = self.gossip.errands.overdue(tick)
            return [*effects, *self._failures(failed, now)]
        if not self._is_on:
            return []
        self._rounds += 1
        hurried = self._rounds < self._config.hurried
        again = self._timer(_HURRY if hurried else 1.0)
        return [*self.gossip.round(now), *self.topics.round(now), again]

    def _timer(self, share: float) -> SetTimer[Tick]:
        spread = 1.0 + _JITTER * (2.0 * self._rng.random() - 1.0)
        return SetTimer(self._config.period * share * spread, Tick(errands.OWNER, _ROUND))
