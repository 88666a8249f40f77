"""Members beside the neighbours: trackers name some, and give other neighbours for those given up."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace
from tests.overlay.harness import HELLO, TOPIC, hints, instruction, peer_id, status
from tests.overlay.test_tracker_client import ME, TRACKER, A, Driven, T, hear, join

from linnet.core.effects import Hold, Release, Send
from linnet.core.fair_shares import Origins
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Control, MemberConfig, TrackerConfig
from linnet.overlay.messages import (
    AskMembers,
    EdgeClose,
    EdgeOpen,
    Instruction,
    Join,
    Leave,
    Members,
    Status,
    TopicStatus,
)
from linnet.overlay.notices import MembersKnown
from linnet.overlay.tracked_topic import MOST_FAILED
from linnet.overlay.tracker import ForgetDue, Tracker
from linnet.overlay.tracker_client import SAMPLING
from linnet.sim.light_network import PartMachine
from linnet.trace.records import Kind, Record

PEERS = [peer_id(number) for number in range(20)]
STRANGER = peer_id("stranger")


class Tracked:
    """A tracker with members of one topic, each of a network of its own unless `networks` says another."""

    def __init__(self, members: int, networks: dict[PeerId, str] | None = None) -> None:
        out, self.origins = Outbox(), Origins()
        self.tracker = Tracker(TrackerConfig(), Random(1), out, self.origins)
        self.machine = PartMachine(out, self.tracker)
        self.told: dict[PeerId, Instruction] = {}
        for peer in PEERS[:members]:
            self.origins.note(peer, (networks or {}).get(peer))
            self.hear(peer, Join(TOPIC, (), hints(peer), 4, False, False))

    def hear(self, peer: PeerId, message: Message) -> list[Any]:
        effects = self.machine.handle(Received(peer, message), 0.0)
        for each in effects:
            if isinstance(each, Send) and isinstance(each.message, Instruction):
                self.told[each.peer] = each.message
        return effects

    def neighbors(self, peer: PeerId) -> list[PeerId]:
        return [contact.peer for contact in self.told[peer].neighbors]

    def sample(self, peer: PeerId) -> list[PeerId]:
        (answer,) = self.hear(peer, AskMembers(TOPIC))
        assert isinstance(answer, Send)
        assert answer.peer == peer
        assert all(contact.hints == hints(contact.peer) for contact in answer.message.contacts)
        return [contact.peer for contact in answer.message.contacts]


def test_a_member_is_named_others_that_are_not_its_neighbours() -> None:
    scene = Tracked(20)
    seen: set[PeerId] = set()
    for _ in range(40):
        sample = scene.sample(PEERS[0])
        assert len(sample) == 8
        seen.update(sample)
    assert seen == set(PEERS) - {PEERS[0], *scene.neighbors(PEERS[0])}


def test_who_cannot_be_dialled_or_is_away_is_not_named() -> None:
    scene = Tracked(20)
    blind, away, *_ = (peer for peer in PEERS[1:] if peer not in scene.neighbors(PEERS[0]))
    scene.machine.handle(Probed(blind, Reason.DIAL_TIMEOUT), 0.0)
    scene.machine.handle(LinkDown(away, Reason.CRASHED), 0.0)
    named = {peer for _ in range(40) for peer in scene.sample(PEERS[0])}
    assert blind not in named
    assert away not in named
    assert len(named) > 10


def test_who_is_not_in_the_topic_is_told_nobody() -> None:
    scene = Tracked(8)
    assert scene.hear(STRANGER, AskMembers(TOPIC)) == [
        Record(Kind.REJECTED, TOPIC, peer=STRANGER, reason=Reason.NOT_JOINED, note="members")
    ]


def test_neighbours_are_of_different_networks_while_there_are_enough() -> None:
    """Twelve of twenty nodes share a network: hardly any of the others has two of them as neighbours."""
    mob = PEERS[8:]
    crowded = Tracked(20, dict.fromkeys(mob, "192.0.2.0/24"))
    alone = Tracked(20)

    def of_mob(scene: Tracked) -> int:
        return sum(peer in mob for honest in PEERS[:8] for peer in scene.neighbors(honest))

    assert of_mob(crowded) <= 8 < of_mob(alone)
    assert {len(crowded.neighbors(peer)) for peer in PEERS} == {4}, "everyone has neighbours all the same"


# A node.


def sampling(config: MemberConfig | None = None) -> Driven:
    """A member with one neighbour, A, whose tracker names members."""
    member = Driven(config or MemberConfig(), ME)
    join(member, TRACKER)
    hello = replace(HELLO, protocols={**HELLO.protocols, SAMPLING: 1})
    member.handle(LinkUp(T, hello, True, None), 0.0)
    hear(member, T, instruction(1, A))
    member.handle(LinkUp(A, HELLO, True, None), 0.0)
    hear(member, A, EdgeOpen(TOPIC))
    return member


def ask(member: Driven) -> list[Any]:
    return member.perform(lambda: member.member.ask_members(TOPIC))


def test_a_node_asks_its_tracker_and_passes_on_whom_it_names() -> None:
    member = sampling()
    assert ask(member) == [Send(T, AskMembers(TOPIC))]
    contacts = (Contact(PEERS[0], hints(PEERS[0])),)
    assert member.handle(Received(T, Members(TOPIC, contacts)), 0.0) == [MembersKnown(TOPIC, contacts)]


def test_only_the_tracker_that_is_followed_names_members() -> None:
    member = sampling()
    told = member.handle(Received(A, Members(TOPIC, ())), 0.0)
    assert told == [Record(Kind.REJECTED, TOPIC, peer=A, reason=Reason.NOT_RESPONSIBLE)]


def test_a_tracker_of_an_older_version_is_not_asked() -> None:
    member = Driven(MemberConfig(), ME)
    assert ask(member) == [], "it is in no topic"
    join(member, TRACKER)
    member.handle(LinkUp(T, HELLO, True, None), 0.0)
    hear(member, T, instruction(1, A))
    assert ask(member) == []


def test_without_a_link_to_the_tracker_nobody_is_asked() -> None:
    member = sampling()
    member.handle(LinkDown(T, Reason.CRASHED), 0.0)
    assert ask(member) == []


def replaced(member: Driven, peer: PeerId) -> list[Any]:
    return member.perform(lambda: member.member.replace_neighbor(TOPIC, peer))


def test_a_neighbour_that_is_given_up_is_reported_missing() -> None:
    member = sampling()
    told = replaced(member, A)
    assert Send(A, EdgeClose(TOPIC)) in told
    assert Release(A, TOPIC.hex()) in told
    assert told[-1] == Send(T, status(1))
    assert member.neighbors(TOPIC) == ()
    assert replaced(member, A) == [], "once"
    assert Hold(A, hints(A), TOPIC.hex()) not in hear(member, T, instruction(2, PEERS[0]))


def test_in_the_naive_protocol_too() -> None:
    member = sampling(MemberConfig(control=Control.NAIVE))
    told = replaced(member, A)
    assert Send(A, EdgeClose(TOPIC)) in told
    assert member.neighbors(TOPIC) == ()


def test_the_tracker_gives_both_other_neighbours() -> None:
    scene = Tracked(12)
    one = PEERS[0]
    given_up, *kept = scene.neighbors(one)
    counter = scene.told[one].counter
    scene.hear(one, Status(counter, TopicStatus(TOPIC, status(counter, *kept).status.neighbors)))
    assert given_up not in scene.neighbors(one)
    assert len(scene.neighbors(one)) == 4
    assert set(kept) < set(scene.neighbors(one))


def test_who_has_left_is_named_to_nobody() -> None:
    scene = Tracked(8)
    gone, *_ = (peer for peer in PEERS[1:8] if peer not in scene.neighbors(PEERS[0]))
    scene.hear(gone, Leave(TOPIC, moved=False))
    assert all(gone not in scene.sample(PEERS[0]) for _ in range(30))


def test_who_reports_ever_more_failed_links_chooses_its_neighbours_no_longer() -> None:
    """So an attacker's keys get honest neighbours alone, and keep the tracker busy."""
    scene = Tracked(0)
    peers = [peer_id(f"node {number}") for number in range(60)]
    for peer in peers:
        scene.hear(peer, Join(TOPIC, (), hints(peer), 4, False, False))
    liar = peers[0]
    records: list[Record] = []
    for _ in range(40):
        counter = scene.told[liar].counter
        effects = scene.hear(liar, status(counter))
        records += [each for each in effects if isinstance(each, Record) and each.reason is Reason.TOO_MANY]
    tracked = scene.tracker._topics[TOPIC]
    assert len(tracked._failed) == len(tracked._reported[liar]) == MOST_FAILED
    assert records[0].peer == liar
    assert len(scene.neighbors(liar)) == 4
    scene.machine.handle(TimerFired(ForgetDue(TOPIC)), 61.0)
    assert (tracked._failed, tracked._reported) == ({}, {}), "after a minute it may report failures again"
