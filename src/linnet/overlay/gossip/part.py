"""The overlay without trackers at one node: rounds of gossip, which find members and neighbours of its
topics.

In each round a node pulls a few peers from a peer of its sample, asks a similar peer for more similar ones,
tells a peer on its rings which members stand beside it, may begin a private intersection with a peer that
seems to share topics, and sends out searches for topics of which it knows too few members. All sub-machines
are passive; inputs and time come here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
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
from linnet.overlay.gossip.commands import TrackerlessStatus
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.gossip.messages import (
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
from linnet.overlay.gossip.peer_gossip import PeerGossip
from linnet.overlay.gossip.private_set_intersection import RISTRETTO, Group
from linnet.overlay.gossip.requests import QuestionDue, Request, TellingDue
from linnet.overlay.gossip.topic_membership import TopicMemberships
from linnet.overlay.notices import Adjacency
from linnet.trace.records import Kind, Record

_JITTER = 0.2
_HURRY = 0.1
_UNNEEDED = (Reason.NOT_NEEDED, Reason.DUPLICATE_LINK)
"""Reasons with which links close though the peer is up: it released the link, or there is another link."""
_APART = "it is on no local network on which anything is allowed"


M = TypeVar("M", bound=Message)


class RoundDue(Timer, frozen=True):
    """Fires when the next round of gossip is due."""


def rejected_of_proxy(peer: PeerId, message: Message) -> Record:
    """Return the record of a message that a proxy must not send."""
    note = f"{type(message).__name__}: nothing but streams is spoken of with a proxy"
    return Record(Kind.REJECTED, peer=peer, reason=Reason.NOT_ALLOWED, note=note)


def _heard(
    kind: type[M], handle: Callable[[GossipOverlay, PeerId, M, float], None]
) -> Callable[[GossipOverlay, PeerId, M, float], None]:
    """Make the handler of a message type; on an error it undoes the effects and blames the sender."""

    @on_message(kind)
    def take(node: GossipOverlay, peer: PeerId, message: M, now: float) -> None:
        before = node.mark_outbox(peer, message)
        if before is None:
            return
        try:
            handle(node, peer, message, now)
        except RemoteError as error:
            node.blame_sender(peer, message, error, before, now)

    return take


class GossipOverlay(Part):
    """Finds and keeps the neighbours of topics without trackers."""

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
        only_local: bool = False,
    ) -> None:
        """`only_local`: with devices on local networks alone, as on the edge."""
        self._config = config
        self._rng = rng
        self._out = out
        self._adjacency = adjacency
        self._links: dict[PeerId, None] = {}
        """Links to those with whom anything is spoken of."""
        self._apart: dict[PeerId, None] = {}
        """The other links: to devices of a local network where nothing is allowed, or is not yet."""
        self.peers = PeerGossip(
            key, config, cells, rng, entropy, listens, self._links, check, out, only_local
        )
        self.topics = TopicMemberships(self.peers, group, entropy, adjacency)
        self._rounds = 0
        self._is_on = False

    # What the node wants.

    def begin(self, bootstrap: Iterable[Contact], now: float) -> None:
        """Begin to gossip with the peers that were known before, and with these."""
        self._is_on = True
        self.peers.begin(bootstrap, now)
        self._out.set_timer(self._pause(0.1), RoundDue())

    def stop(self, now: float) -> None:
        """Write down the peers that are known."""
        self._is_on = False
        self.peers.save_peers(now)
        self.topics.save_rings()

    def status(self, now: float) -> TrackerlessStatus:
        """Describe the state of the overlay."""
        return self.topics.status(self._rounds, now)

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Send the questions and messages that wait for this link."""
        if self._adjacency.is_left_out(event.peer):
            return
        if self.peers.is_apart(event.peer):
            self._apart[event.peer] = None
        else:
            self._begin_link(event.peer, now)

    def _begin_link(self, peer: PeerId, now: float) -> None:
        self._links[peer] = None
        self.peers.handle_link_up(peer, now)
        self.topics.handle_link_up(peer, now)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Fail the questions that were asked over this link."""
        if self._adjacency.is_left_out(event.peer):
            return
        if self._apart.pop(event.peer, self) is None:
            return
        self._links.pop(event.peer, None)
        if event.reason in _UNNEEDED:
            # The peer is up: questions of the meantime are asked again over the next link, or time out.
            self.topics.handle_link_down(event.peer, False, now)
        else:
            self._handle_loss(event.peer, False, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Fail the questions that wait for this link."""
        if event.peer not in self._links and not self._adjacency.is_left_out(event.peer):
            self._handle_loss(event.peer, True, now)

    # Local networks.

    def add_local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> None:
        """Gossip with a device that is on a local network with us, on which these topics may be known."""
        self.peers.add_local(contact)
        if self._apart.pop(contact.peer, self) is None:
            self._begin_link(contact.peer, now)
        self.topics.add_local(contact.peer, allowed, now)

    def remove_local(self, peer: PeerId, is_denied: bool, now: float) -> None:
        """A device is on no local network with us; `is_denied`: nothing is allowed where it was met."""
        self.topics.remove_local(peer, is_denied, now)
        if self.peers.is_apart(peer) and self._links.pop(peer, self) is None:
            self._apart[peer] = None

    # Messages.

    handle_pull = _heard(Pull, lambda node, peer, told, now: node.peers.answer_pull(peer, told, now))
    handle_ask_alike = _heard(
        AskAlike,
        lambda node, peer, told, now: node.peers.answer_ask_alike(peer, told, node.topics.members(), now),
    )
    handle_pulled = _heard(Pulled, lambda node, peer, told, now: node.take_answer(peer, told, now))
    handle_alike = _heard(Alike, lambda node, peer, told, now: node.take_answer(peer, told, now))
    handle_intersect = _heard(
        Intersect, lambda node, peer, told, now: node.topics.handle_intersect(peer, told, now)
    )
    handle_intersected = _heard(
        Intersected, lambda node, peer, told, now: node.topics.handle_intersected(peer, told, now)
    )
    handle_intersect_end = _heard(
        IntersectEnd, lambda node, peer, told, now: node.topics.handle_intersect_end(peer, told, now)
    )
    handle_seek = _heard(
        Seek, lambda node, peer, told, now: node.topics.searches.handle_seek(peer, told, now)
    )
    handle_sought = _heard(Sought, lambda node, peer, told, now: node.topics.handle_sought(peer, told, now))
    handle_ring_ask = _heard(
        RingAsk, lambda node, peer, told, now: node.topics.handle_ring_ask(peer, told, now)
    )
    handle_ring_tell = _heard(
        RingTell, lambda node, peer, told, now: node.topics.handle_ring_tell(peer, told, now)
    )
    handle_beside = _heard(Beside, lambda node, peer, told, now: node.topics.handle_beside(peer, told, now))

    def take_answer(self, peer: PeerId, message: Pulled | Alike, now: float) -> None:
        """Take in the peers that a peer names: some of its sample, or some that are similar to us."""
        self.peers.handle_answer(peer, message, now)
        self.topics.note_introduced(peer, now)

    def mark_outbox(self, peer: PeerId, message: Message) -> tuple[int, int] | None:
        """Mark the outbox before a message is handled; None: messages of this peer are rejected."""
        if self._adjacency.is_left_out(peer):
            self._out.record(rejected_of_proxy(peer, message))
            return None
        if self.peers.is_apart(peer):
            note = f"{type(message).__name__}: {_APART}"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.NOT_ALLOWED, note=note))
            return None
        return self._out.mark()

    def blame_sender(
        self, peer: PeerId, message: Message, error: RemoteError, before: tuple[int, int], now: float
    ) -> None:
        """Record and blame a peer that broke the protocol; if the error is grave, ban it for a day."""
        self._out.forget_since(before)
        name = type(message).__name__
        note = f"{name}: {error.detail}"[:200]
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=error.reason, note=note))
        self._out.blame(peer, error.reason)
        if error.reason in (Reason.BAD_SIGNATURE, Reason.IMPLAUSIBLE_FILTER, Reason.NOT_IN_TOPIC):
            self.peers.note_offence(peer, now)
            self.topics.handle_silence(peer, now)

    # Timers.

    @on_timer(QuestionDue)
    def end_question(self, timer: QuestionDue, now: float) -> None:
        """Fail a question that was not answered in time."""
        self._handle_failures(self.peers.requests.end_question(timer.peer, timer.kind), now)

    @on_timer(TellingDue)
    def end_telling(self, timer: TellingDue, now: float) -> None:
        """Fail the messages for which no link opened in time."""
        self._handle_failures(self.peers.requests.end_telling(timer.peer), now)

    @on_timer(RoundDue)
    def begin_round(self, timer: RoundDue, now: float) -> None:
        """Run one round of gossip for peers and topics."""
        if not self._is_on:
            return
        for peer in [peer for peer in self._apart if not self.peers.is_apart(peer)]:
            # Others speak of it in the internet.
            del self._apart[peer]
            self._begin_link(peer, now)
        self._rounds += 1
        pause = self._pause(_HURRY if self._rounds < self._config.hurried else 1.0)
        self.peers.begin_round(now)
        self.topics.begin_round(now)
        self._out.set_timer(pause, RoundDue())

    def _handle_loss(self, peer: PeerId, is_dead: bool, now: float) -> None:
        self._handle_failures(self.peers.requests.handle_link_down(peer), now)
        self.topics.handle_link_down(peer, is_dead, now)

    def _handle_failures(self, failed: Iterable[Request], now: float) -> None:
        for request in failed:
            match request.message:
                case Pull() | AskAlike():
                    self.peers.handle_silence(request.peer, request.message, now)
                case RingAsk():
                    self.topics.handle_silence(request.peer, now)
                case Intersect():
                    self.topics.end_intersection(request.peer)
                case Seek() | Sought():
                    self.topics.searches.handle_failure(request.peer, request.message, now)
                case _:
                    assert_never(request.message)

    def _pause(self, share: float) -> float:
        spread = 1.0 + _JITTER * (2.0 * self._rng.random() - 1.0)
        return self._config.period * share * spread
