from __future__ import annotations

from tests.overlay.harness import TOPIC, hints, peer_id, said

from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import Control, MemberConfig
from linnet.overlay.member_counter import CounterFollower
from linnet.overlay.member_naive import NaiveFollower
from linnet.overlay.membership import Membership, Wish
from linnet.overlay.messages import Instruction, Join, NeighborStatus, TopicStatus
from linnet.overlay.notices import StorageKnown

A, B, T, S = (peer_id(name) for name in ("a", "b", "tracker", "standby"))
WISH = Wish(TOPIC, (Contact(T, hints(T)), Contact(S, hints(S))), 6, True, False)


def membership_of(config: MemberConfig, links: dict[PeerId, None], out: Outbox | None = None) -> Membership:
    out = out or Outbox()
    return Membership(WISH, config, links, out, Adjacency(out))


def test_the_switch_chooses_the_protocol() -> None:
    assert isinstance(membership_of(MemberConfig(), {}).follower, CounterFollower)
    naive = MemberConfig(control=Control.NAIVE)
    assert isinstance(membership_of(naive, {}).follower, NaiveFollower)


def test_it_tells_what_stands() -> None:
    links: dict[PeerId, None] = {A: None, B: None}
    membership = membership_of(MemberConfig(), links)
    assert membership.join_message(("tls://me:1",)) == Join(TOPIC, (), ("tls://me:1",), 6, False, True)
    membership.instruct(Instruction(TOPIC, 1, (Contact(A), Contact(B)), ()), 0.0)
    membership.follower.handle_open(A)
    membership.follower.handle_open(B)
    assert membership.neighbors == (A, B)
    assert membership.join_message(()) == Join(TOPIC, (A, B), (), 6, False, True)
    assert membership.status({B: 0.0425}) == TopicStatus(
        TOPIC, (NeighborStatus(A, None), NeighborStatus(B, 42500))
    )


def test_storage_nodes_are_told_when_they_are_others() -> None:
    out = Outbox()
    membership = membership_of(MemberConfig(), {}, out)
    one, two = (Contact(A, hints(A)),), (Contact(B, hints(B)),)
    assert StorageKnown(TOPIC, one) in said(out, membership.instruct, Instruction(TOPIC, 5, (), one), 0.0)
    assert membership.storage_nodes == one
    again = said(out, membership.instruct, Instruction(TOPIC, 6, (), one), 0.0)
    assert not any(isinstance(effect, StorageKnown) for effect in again)
    # A stale instruction tells stale things.
    membership.instruct(Instruction(TOPIC, 4, (), two), 0.0)
    assert membership.storage_nodes == one


def test_turning_to_another_tracker_keeps_neighbors_and_forgets_the_counter() -> None:
    membership = membership_of(MemberConfig(), {A: None})
    assert membership.tracker == membership.first == WISH.trackers[0]
    membership.instruct(Instruction(TOPIC, 9, (Contact(A),), ()), 0.0)
    membership.follower.handle_open(A)
    membership.turn_to(1)
    assert membership.tracker == WISH.trackers[1]
    assert membership.first == WISH.trackers[0]
    assert not membership.is_instructed
    assert membership.follower.counter is None
    assert membership.neighbors == (A,)
