"""A node without trackers: rounds of gossip, and what comes of them for its topics.

In each round a node pulls a few peers from someone of its sample, asks someone who is alike for more of
the kind, tells someone on its rings who stands beside it, may begin a private intersection with someone
who seems to share topics, and sends out searches for topics of which it knows too few members. All the
parts are passive; this is where questions are asked, links held and time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from random import Random
from typing import TypeVar, assert_never

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.luck import Entropy
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_input, on_message, on_timer
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.trackerless.errands import Errand, QuestionDue, TellingDue
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
)
from linnet.overlay.trackerless.oblivious import RISTRETTO, Group
from linnet.overlay.trackerless.status import TrackerlessStatus
from linnet.overlay.trackerless.topics import Topics
from linnet.trace.records import Kind, Record

_JITTER = 0.2
_HURRY = 0.1


M = TypeVar("M", bound=Message)


class RoundDue(Timer, frozen=True):
    """It is time for the next round of gossip."""


def rejected_of_proxy(peer: PeerId, message: Message) -> Record:
    """A proxy speaks of what it is not asked to."""
    note = f"{type(message).__name__}: nothing but streams is spoken of with a proxy"
    return Record(Kind.REJECTED, peer=peer, reason=Reason.NOT_ALLOWED, note=note)


def _checked(
    handle: Callable[[Trackerless, PeerId, M, float], None],
) -> Callable[[Trackerless, PeerId, M, float], None]:
    """Nothing comes of a message that no honest peer sends, but that its sender is blamed."""

    @wraps(handle)
    def checked(self: Trackerless, peer: PeerId, message: M, now: float) -> None:
        before = self.mark_outbox(peer, message)
        if before is None:
            return
        try:
            handle(self, peer, message, now)
        except RemoteError as error:
            self.blame_sender(peer, message, error, before, now)

    return checked


class Trackerless(Part):
    """All that a node does without trackers."""

    def __init__(
        self,
        key: SigningKey,
        config: TrackerlessConfig,
        cells: Cells,
        rng: Random,
        entropy: Entropy,
        out: Outbox,
        adjacency: Adjacency,
        listens: tuple[str, ...] = (),
        group: Group = RISTRETTO,
        check: DescriptorCheck = check_descriptor,
    ) -> None:
        self._config = config
        self._rng = rng
        self._out = out
        self._adjacency = adjacency
        self._links: dict[PeerId, None] = {}
        self.gossip = Gossip(key, config, cells, rng, entropy, listens, self._links, check, out)
        self.topics = Topics(self.gossip, group, entropy, adjacency)
        self._rounds = 0
        self._is_on = False

    # What the node wants.

    def begin(self, bootstrap: Iterable[Contact], now: float) -> None:
        """Begin with whoever was known before, and with these."""
        self._is_on = True
        self.gossip.begin(bootstrap, now)
        self._out.set_timer(self._pause(0.1), RoundDue())

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
    ) -> None:
        """Want neighbours in a topic, which nobody learns of who does not know it.

        `contacts` may be members: those named in an invitation, or met before.
        """
        self.topics.join(topic, keeps, now, contacts, secret)

    def leave(self, topic: TopicId, now: float) -> None:
        """Want none any more."""
        self.topics.leave(topic, now)

    def know(self, contacts: Iterable[Contact], now: float) -> None:
        """There are these nodes: an address from the user, or from the local network."""
        self.gossip.approach(contacts, now)

    def add_local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> None:
        """A device is on a local network with us, on which these topics may be known."""
        self.topics.add_local(contact, allowed, now)

    def remove_local(self, peer: PeerId) -> None:
        """A device is on no local network with us any more."""
        self.topics.remove_local(peer)

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

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Say what waits for this link."""
        if self._adjacency.is_left_out(event.peer):
            return
        self._links[event.peer] = None
        self.gossip.errands.handle_link_up(event.peer)
        self.topics.handle_link_up(event.peer, now)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """What was asked over this link has failed."""
        if self._adjacency.is_left_out(event.peer):
            return
        self._links.pop(event.peer, None)
        self._lose(event.peer, False, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """What was to be asked over this link has failed."""
        if event.peer not in self._links and not self._adjacency.is_left_out(event.peer):
            self._lose(event.peer, True, now)

    # Messages.

    @on_message(Pull)
    @_checked
    def handle_pull(self, peer: PeerId, message: Pull, now: float) -> None:
        """A peer wants some of our sample."""
        self.gossip.answer_pull(peer, message, now)

    @on_message(AskAlike)
    @_checked
    def handle_ask_alike(self, peer: PeerId, message: AskAlike, now: float) -> None:
        """A peer wants to know others that are like it."""
        self.gossip.answer_ask_alike(peer, message, self.topics.members(), now)

    @on_message(Pulled)
    @_checked
    def handle_pulled(self, peer: PeerId, message: Pulled, now: float) -> None:
        """A peer names some of its sample."""
        self.gossip.learn(peer, message, now)
        self.topics.introduce(peer, now)

    @on_message(Alike)
    @_checked
    def handle_alike(self, peer: PeerId, message: Alike, now: float) -> None:
        """A peer names others that are like us."""
        self.gossip.learn(peer, message, now)
        self.topics.introduce(peer, now)

    @on_message(Intersect)
    @_checked
    def handle_intersect(self, peer: PeerId, message: Intersect, now: float) -> None:
        """A peer begins a private intersection."""
        self.topics.handle_intersect(peer, message, now)

    @on_message(Intersected)
    @_checked
    def handle_intersected(self, peer: PeerId, message: Intersected, now: float) -> None:
        """A peer goes on with an intersection that we began."""
        self.topics.handle_intersected(peer, message, now)

    @on_message(IntersectEnd)
    @_checked
    def handle_intersect_end(self, peer: PeerId, message: IntersectEnd, now: float) -> None:
        """A peer ends an intersection."""
        self.topics.handle_intersect_end(peer, message, now)

    @on_message(Seek)
    @_checked
    def handle_seek(self, peer: PeerId, message: Seek, now: float) -> None:
        """A search comes by."""
        self.topics.handle_seek(peer, message, now)

    @on_message(Sought)
    @_checked
    def handle_sought(self, peer: PeerId, message: Sought, now: float) -> None:
        """A search found someone."""
        self.topics.handle_sought(peer, message, now)

    @on_message(RingAsk)
    @_checked
    def handle_ring_ask(self, peer: PeerId, message: RingAsk, now: float) -> None:
        """A member says who stands beside us, and asks the same."""
        self.topics.handle_ring_ask(peer, message, now)

    @on_message(RingTell)
    @_checked
    def handle_ring_tell(self, peer: PeerId, message: RingTell, now: float) -> None:
        """A member says who stands beside us."""
        self.topics.handle_ring_tell(peer, message, now)

    @on_message(Beside)
    @_checked
    def handle_beside(self, peer: PeerId, message: Beside, now: float) -> None:
        """A peer counts us as a neighbour, or no longer."""
        self.topics.handle_beside(peer, message, now)

    def mark_outbox(self, peer: PeerId, message: Message) -> tuple[int, int] | None:
        """How much there is before a message is handled; None: this peer is not heard."""
        if self._adjacency.is_left_out(peer):
            self._out.record(rejected_of_proxy(peer, message))
            return None
        return self._out.mark()

    def blame_sender(
        self, peer: PeerId, message: Message, error: RemoteError, before: tuple[int, int], now: float
    ) -> None:
        """A peer sent what no honest one does: it is named, and left out for a day if it was grave."""
        self._out.forget_since(before)
        name = type(message).__name__
        note = f"{name}: {error.detail}"[:200]
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note))
        self._out.blame(peer, error.reason)
        if error.reason in (Reason.BAD_SIGNATURE, Reason.IMPLAUSIBLE_FILTER, Reason.NOT_IN_TOPIC):
            self.gossip.note_offence(peer, now)
            self.topics.leave_out(peer, now)

    # Timers.

    @on_timer(QuestionDue)
    def end_question(self, timer: QuestionDue, now: float) -> None:
        """A peer did not answer in time."""
        self._fail(self.gossip.errands.end_question(timer.peer, timer.kind), now)

    @on_timer(TellingDue)
    def end_telling(self, timer: TellingDue, now: float) -> None:
        """No link came in time for what a peer was to be told."""
        self._fail(self.gossip.errands.end_telling(timer.peer), now)

    @on_timer(RoundDue)
    def begin_round(self, timer: RoundDue, now: float) -> None:
        """Ask some peers, and see to the topics."""
        if not self._is_on:
            return
        self._rounds += 1
        pause = self._pause(_HURRY if self._rounds < self._config.hurried else 1.0)
        self.gossip.round(now)
        self.topics.round(now)
        self._out.set_timer(pause, RoundDue())

    def _lose(self, peer: PeerId, is_dead: bool, now: float) -> None:
        self._fail(self.gossip.errands.handle_link_down(peer), now)
        self.topics.handle_link_down(peer, is_dead, now)

    def _fail(self, failed: Iterable[Errand], now: float) -> None:
        for errand in failed:
            match errand.message:
                case Pull() | AskAlike():
                    self.gossip.handle_silence(errand.peer, errand.message, now)
                case RingAsk():
                    self.topics.handle_silence(errand.peer, now)
                case Intersect():
                    self.topics.end_intersection(errand.peer)
                case Seek() | Sought():
                    self.topics.handle_lost_search(errand.peer, errand.message, now)
                case _:
                    assert_never(errand.message)

    def _pause(self, share: float) -> float:
        spread = 1.0 + _JITTER * (2.0 * self._rng.random() - 1.0)
        return self._config.period * share * spread
