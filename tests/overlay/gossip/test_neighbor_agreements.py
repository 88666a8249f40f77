"""Two members of a topic become neighbours when both say so, and nobody else does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.harness import said

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.overlay.gossip.messages import Beside
from linnet.overlay.gossip.neighbors import NeighborAgreements
from linnet.overlay.gossip.topic_tags import hint, proof, topic_keys
from linnet.overlay.notices import Adjacency, NeighborDown, NeighborUp
from linnet.trace.records import Record

TOPIC = TopicId(bytes([1]) * 32)
OTHER = TopicId(bytes([2]) * 32)
A, B, C = (PeerId(bytes([at]) * 32) for at in (10, 20, 30))
KEYS = topic_keys(TOPIC)
AT = ("tls://h:1",)
PURPOSE = f"ring {TOPIC.hex()[:16]}"


def _beside(
    sender: PeerId, to: PeerId, is_open: bool = True, keeps: bool = False, chosen: bool | None = None
) -> Beside:
    chosen = is_open if chosen is None else chosen
    return Beside(hint(KEYS, sender, to), 5, proof(KEYS, sender, 5), is_open, keeps, chosen)


def _member(*linked: PeerId, keeps: bool = False) -> tuple[NeighborAgreements, Outbox]:
    """A in the topic, with links to these."""
    out = Outbox()
    ours = NeighborAgreements(A, dict.fromkeys(linked), out, Adjacency(out))
    ours.open_topic(KEYS, keeps, 5)
    return ours, out


def _neighbor() -> tuple[NeighborAgreements, Outbox]:
    """A, which wants B and is wanted by it."""
    ours, out = _member(B)
    ours.want_neighbors(TOPIC, {B: AT}, 5)
    ours.handle_beside(B, _beside(B, A), 5)
    return ours, out


def _without_records(effects: list[Effect | Notice]) -> list[Effect | Notice]:
    return [effect for effect in effects if not isinstance(effect, Record)]


def test_whoever_is_wanted_is_held_told_and_a_neighbour_once_it_says_so_too() -> None:
    links: dict[PeerId, None] = {}
    out = Outbox()
    ours = NeighborAgreements(A, links, out, Adjacency(out))
    assert said(out, ours.open_topic, KEYS, False, 5) == []
    assert said(out, ours.want_neighbors, TOPIC, {B: AT}, 5) == [Hold(B, AT, PURPOSE)]
    links[B] = None
    assert said(out, ours.handle_link_up, B, 5) == [Send(B, _beside(A, B))]
    assert ours.neighbors(TOPIC) == ()
    assert _without_records(said(out, ours.handle_beside, B, _beside(B, A, keeps=True), 5)) == [
        NeighborUp(TOPIC, B)
    ]
    assert (ours.neighbors(TOPIC), ours.keepers(TOPIC), ours.count_held()) == ((B,), (B,), {B: 1})


def test_whoever_wants_us_is_answered_and_let_go_when_it_wants_no_more() -> None:
    ours, out = _member(B, keeps=True)
    told = _beside(A, B, keeps=True, chosen=False)
    assert _without_records(said(out, ours.handle_beside, B, _beside(B, A), 5)) == [
        Send(B, told),
        NeighborUp(TOPIC, B),
    ]
    assert _without_records(said(out, ours.handle_beside, B, _beside(B, A, is_open=False), 5)) == [
        NeighborDown(TOPIC, B)
    ]
    assert ours.neighbors(TOPIC) == ()
    assert said(out, ours.close_topic, TOPIC, 5) == [], "it knows already that we count it no more"


def test_who_agrees_to_what_we_let_go_meanwhile_takes_no_place() -> None:
    many = [PeerId(bytes([100 + at]) * 32) for at in range(17)]
    ours, out = _member(*many)
    for peer in many:
        ours.want_neighbors(TOPIC, {peer: AT}, 5)
    ours.want_neighbors(TOPIC, {}, 5)
    for peer in many:
        assert said(out, ours.handle_beside, peer, _beside(peer, A, chosen=False), 5) == []
    assert _without_records(said(out, ours.handle_beside, many[16], _beside(many[16], A), 5))[1:] == [
        NeighborUp(TOPIC, many[16])
    ]


def test_a_link_that_goes_takes_the_neighbour_with_it_and_brings_it_back() -> None:
    links = {B: None}
    out = Outbox()
    ours = NeighborAgreements(A, links, out, Adjacency(out))
    ours.open_topic(KEYS, False, 5)
    ours.want_neighbors(TOPIC, {B: AT}, 5)
    ours.handle_beside(B, _beside(B, A), 5)
    del links[B]
    assert _without_records(said(out, ours.handle_link_down, B)) == [NeighborDown(TOPIC, B)]
    links[B] = None
    assert said(out, ours.handle_link_up, B, 5) == [Send(B, _beside(A, B))]


def test_who_is_wanted_no_more_is_told_and_released() -> None:
    ours, out = _member(B)
    ours.want_neighbors(TOPIC, {B: AT}, 5)
    ours.handle_beside(B, _beside(B, A, chosen=False), 5)
    assert _without_records(said(out, ours.want_neighbors, TOPIC, {C: AT}, 5)) == [
        Send(B, _beside(A, B, is_open=False)),
        NeighborDown(TOPIC, B),
        Release(B, PURPOSE),
        Hold(C, AT, PURPOSE),
    ]
    assert _without_records(said(out, ours.close_topic, TOPIC, 5)) == [Release(C, PURPOSE)]
    assert ours.neighbors(TOPIC) == ()


def test_who_left_and_comes_back_over_the_same_link_is_told_again() -> None:
    ours, out = _neighbor()
    assert _without_records(said(out, ours.handle_beside, B, _beside(B, A, is_open=False), 5)) == [
        NeighborDown(TOPIC, B)
    ]
    assert said(out, ours.want_neighbors, TOPIC, {B: AT}, 5) == [], "it said that it does not want to be"
    back = [Send(B, _beside(A, B)), NeighborUp(TOPIC, B)]
    assert _without_records(said(out, ours.handle_beside, B, _beside(B, A), 5)) == back
    assert said(out, ours.handle_beside, B, _beside(B, A), 5) == []


def test_who_chose_us_stays_when_we_choose_it_no_more() -> None:
    ours, out = _neighbor()
    assert said(out, ours.want_neighbors, TOPIC, {}, 5) == [
        Send(B, _beside(A, B, chosen=False)),
        Release(B, PURPOSE),
    ]
    assert ours.neighbors(TOPIC) == (B,)
    assert said(out, ours.want_neighbors, TOPIC, {B: AT}, 5) == [Hold(B, AT, PURPOSE), Send(B, _beside(A, B))]
    ours.want_neighbors(TOPIC, {}, 5)
    assert _without_records(said(out, ours.handle_beside, B, _beside(B, A, chosen=False), 5)) == [
        Send(B, _beside(A, B, is_open=False)),
        NeighborDown(TOPIC, B),
    ]


class _Pair:
    """Two members of a topic, and what is under way between them."""

    def __init__(self) -> None:
        self.links: dict[PeerId, dict[PeerId, None]] = {A: {B: None}, B: {A: None}}
        self.out = out = Outbox()
        self.nodes = {
            peer: NeighborAgreements(peer, links, out, Adjacency(out)) for peer, links in self.links.items()
        }
        self.wanted = {A: False, B: False}
        self.under_way: dict[PeerId, list[Beside]] = {A: [], B: []}
        for node in self.nodes.values():
            node.open_topic(KEYS, False, 5)

    def turn(self, peer: PeerId, other: PeerId) -> None:
        """One wants the other from now on, or no longer."""
        self.wanted[peer] = not self.wanted[peer]
        want = {other: AT} if self.wanted[peer] else {}
        self._perform(other, said(self.out, self.nodes[peer].want_neighbors, TOPIC, want, 5))

    def hear(self, peer: PeerId, other: PeerId) -> None:
        """The next message arrives at one."""
        if self.under_way[peer]:
            message = self.under_way[peer].pop(0)
            self._perform(other, said(self.out, self.nodes[peer].handle_beside, other, message, 5))

    def cut(self) -> None:
        """The link goes, with what is under way."""
        for peer, other in ((A, B), (B, A)):
            self.links[peer].pop(other, None)
            self.nodes[peer].handle_link_down(other)
            self.under_way[peer].clear()

    def link(self) -> None:
        """The link comes."""
        self.cut()
        for peer, other in ((A, B), (B, A)):
            self.links[peer][other] = None
            self._perform(other, said(self.out, self.nodes[peer].handle_link_up, other, 5))

    def _perform(self, other: PeerId, effects: list[Effect | Notice]) -> None:
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Beside):
                self.under_way[other].append(effect.message)


@given(st.lists(st.sampled_from("abABxy"), max_size=30))
def test_two_come_to_rest_and_agree_whatever_they_want_and_however_messages_cross(steps: list[str]) -> None:
    pair = _Pair()
    does = {
        "a": lambda: pair.turn(A, B),
        "b": lambda: pair.turn(B, A),
        "A": lambda: pair.hear(A, B),
        "B": lambda: pair.hear(B, A),
        "x": pair.cut,
        "y": pair.link,
    }
    for step in steps:
        does[step]()
    if B not in pair.links[A]:
        pair.link()
    for _ in range(20):
        pair.hear(A, B)
        pair.hear(B, A)
    assert pair.under_way == {A: [], B: []}
    neighbors = [pair.nodes[A].neighbors(TOPIC), pair.nodes[B].neighbors(TOPIC)]
    assert neighbors == ([(B,), (A,)] if any(pair.wanted.values()) else [(), ()])


def test_a_hint_of_another_topic_or_a_wrong_proof_is_named_and_changes_nothing() -> None:
    ours, out = _member(B)
    strange = Beside(hint(topic_keys(OTHER), A, B), 5, proof(topic_keys(OTHER), B, 5), True)
    forged = Beside(hint(KEYS, A, B), 5, proof(KEYS, C, 5), True)
    old = Beside(hint(KEYS, A, B), 3, proof(KEYS, B, 3), True)
    for message, reason in (
        (strange, Reason.NOT_JOINED),
        (forged, Reason.NOT_IN_TOPIC),
        (old, Reason.NOT_IN_TOPIC),
    ):
        (record,) = said(out, ours.handle_beside, B, message, 5)
        assert isinstance(record, Record)
        assert record.reason is reason
    assert ours.neighbors(TOPIC) == ()


def test_only_so_many_may_choose_us() -> None:
    many = [PeerId(bytes([100 + at]) * 32) for at in range(17)]
    ours, out = _member(*many)
    for peer in many:
        effects = said(out, ours.handle_beside, peer, _beside(peer, A), 5)
    assert len(ours.neighbors(TOPIC)) == 16
    refusal = effects[0]
    assert isinstance(refusal, Record)
    assert refusal.reason is Reason.TOO_MANY


def test_neighbours_are_told_when_the_topic_is_kept_from_now_on() -> None:
    ours, out = _member(B)
    ours.want_neighbors(TOPIC, {B: AT}, 5)
    assert said(out, ours.open_topic, KEYS, True, 5) == [Send(B, _beside(A, B, keeps=True))]
    assert said(out, ours.open_topic, KEYS, True, 5) == []
