"""Shallow trees, and fragments that go to members only, who are tested again only where it could matter."""

from __future__ import annotations

import os
from typing import NamedTuple

import pytest
from tests.raised import reason_of

from linnet.core.effects import AfterCommit
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.places.channel.membership import Verdict
from linnet.places.config import PlacesConfig
from linnet.places.multicast.fragmentation import Change, Flag, Head
from linnet.places.multicast.tree import LEASE, RESERVE, SILENT, RelayFilter, Tree
from linnet.trace.records import Kind, Record

PLACE = TopicId(b"t" * 32)
NYM = AuthorId(b"n" * 32)
GUESTS = 10_000 if os.environ.get("LINNET_SOAK") else 1_000


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def contact(number: int) -> Contact:
    return Contact(peer(number), (f"tls://10.0.0.1:{1 + number}",))


def tree(fanout: int = 3, upstreams: int = 2, out: Outbox | None = None) -> Tree:
    config = PlacesConfig(fanout=fanout, upstreams=upstreams)
    return Tree(PLACE, peer(0), config, out or Outbox())


def test_the_way_up_is_the_upstream_with_the_fewest_hops() -> None:
    found = tree()
    assert found.way_up() is None
    for number in (1, 2, 3):
        found.connect_up(peer(number))
    found.count_fragment(peer(1), 4, True)
    found.count_fragment(peer(2), 2, False)
    assert found.way_up() == peer(2)  # the third has brought nothing yet
    found.count_fragment(peer(3), 1, False)
    assert found.way_up() == peer(3)
    found.disconnect(peer(3))
    assert (found.way_up(), found.lacks) == (peer(2), 0)
    found.disconnect(peer(2))
    assert found.lacks == 1


def test_upstreams_past_those_that_are_wanted_are_named_the_farthest_first() -> None:
    found = tree(upstreams=2)
    for number in (1, 2, 3, 4):
        found.connect_up(peer(number))
    assert found.surplus == (peer(1), peer(2))
    for number, hops in ((1, 1), (2, 5), (3, 2), (4, 7)):
        found.count_fragment(peer(number), hops, False)
    assert found.surplus == (peer(4), peer(2))
    found.disconnect(peer(4))
    found.disconnect(peer(2))
    assert not found.surplus
    assert found.lacks == 0


def test_newcomers_are_handed_on_in_turn_when_it_is_full() -> None:
    found = tree(upstreams=1)
    assert [found.connect_down(contact(number), NYM) for number in (1, 2, 3, 4)] == [True] * 3 + [False]
    assert found.is_full
    first = [found.redirect(peer(9))[0].peer for _ in range(6)]
    assert first == [peer(1), peer(2), peer(3)] * 2
    assert found.connect_down(contact(2), NYM)  # known already
    found.disconnect(peer(1))
    assert found.connect_down(contact(4), NYM)
    assert list(found.downstreams) == [peer(2), peer(3), peer(4)]


def test_nobody_is_sent_to_itself_or_to_whom_nobody_can_dial() -> None:
    found = tree()
    found.connect_down(contact(1), NYM)
    found.connect_down(Contact(peer(2)), NYM)
    assert found.redirect(peer(1)) == ()
    assert found.redirect(peer(5)) == (contact(1),)


def test_an_upstream_is_not_taken_below_and_nobody_is_its_own() -> None:
    found = tree()
    found.connect_up(peer(1))
    assert not found.connect_down(contact(1), NYM)
    assert not found.connect_down(contact(0), NYM)
    assert reason_of(Refused, found.connect_up, peer(0)) is Reason.NOT_ALLOWED


def test_an_upstream_that_brings_nothing_is_named_after_so_many() -> None:
    out = Outbox()
    found = tree(out=out)
    found.connect_up(peer(1))
    found.connect_up(peer(2))
    named = [found.count_fragment(peer(1), 1, True) for _ in range(SILENT)]
    assert named[:-1] == [[]] * (SILENT - 1)
    assert named[-1] == [peer(2)]
    note = f"brought 0 of {SILENT} fragments"
    assert out.take() == [Record(Kind.DROPPED, PLACE, peer=peer(2), reason=Reason.SLOW_PEER, note=note)]


def test_loss_does_not_make_an_upstream_silent_and_one_alone_is_not_judged() -> None:
    out = Outbox()
    found = tree(out=out)
    found.connect_up(peer(1))
    found.connect_up(peer(2))
    for number in range(10 * SILENT):
        assert found.count_fragment(peer(1), 1, True) == []
        if number % 4:  # one of four is lost
            assert found.count_fragment(peer(2), 1, False) == []
    found.disconnect(peer(2))
    assert [found.count_fragment(peer(3), 1, True) for _ in range(2 * SILENT)] == [[]] * (2 * SILENT)
    assert out.take() == []


def entered(trees: dict[PeerId, Tree], number: int) -> list[PeerId]:
    """How a newcomer gets in: at the host first, then at whom it is handed on to."""
    mine, asked = trees[peer(number)], dict[PeerId, None]()
    line = [peer(0)]
    while line and mine.lacks:
        at = line.pop(0)
        if at in asked:
            continue
        asked[at] = None
        if trees[at].connect_down(contact(number), NYM):
            mine.connect_up(at)
        else:
            line = [*(each.peer for each in trees[at].redirect(peer(number))), *line]
    return list(asked)


@pytest.mark.parametrize(("upstreams", "deepest"), [(1, 4), (2, 5)])
def test_many_joins_make_a_shallow_tree(upstreams: int, deepest: int) -> None:
    config = PlacesConfig(fanout=8, upstreams=upstreams)
    trees = {peer(number): Tree(PLACE, peer(number), config, Outbox()) for number in range(GUESTS + 1)}
    asked = [len(entered(trees, number)) for number in range(1, GUESTS + 1)]
    depth = {peer(0): 0}
    level = [peer(0)]
    while level:
        level = [below for each in level for below in trees[each].downstreams if below not in depth]
        for each in level:
            depth.setdefault(each, 1 + min(depth[up] for up in trees[each].upstreams if up in depth))
        level = list(dict.fromkeys(level))
    figures = (max(depth.values()), max(len(each.downstreams) for each in trees.values()), max(asked))
    assert len(depth) == GUESTS + 1, figures  # everybody is reached
    assert figures[0] <= deepest + (2 if GUESTS > 1_000 else 0), figures
    assert figures[1] <= 8
    assert len(trees[peer(0)].downstreams) == 8
    assert figures[2] <= 8 + 2 * (GUESTS > 1_000), figures  # nodes that one newcomer had to ask
    ways = [len(trees[peer(number)].upstreams) for number in range(2, GUESTS + 1)]
    assert sum(ways) >= 0.95 * upstreams * len(ways), sum(ways)


def test_who_is_stranded_is_taken_past_the_fan_out_for_a_while() -> None:
    found = tree(fanout=2)
    assert found.connect_down(contact(1), NYM, 10.0)  # there was room: it is one of those who stay
    assert found.connect_down(contact(2), NYM)
    assert not found.connect_down(contact(3), NYM)
    stranded = range(3, 3 + RESERVE)
    assert all(found.connect_down(contact(number), NYM, 10.0) for number in stranded)
    assert not found.connect_down(contact(9), NYM, 10.0 + LEASE)
    assert found.outstayed(peer(9), 9.9 + LEASE) is None
    assert found.outstayed(peer(3), 10.0 + LEASE) is None, "it is in"
    assert found.outstayed(peer(9), 10.0 + LEASE) == peer(3), "who came first goes first"
    found.disconnect(peer(3))
    assert found.outstayed(peer(9), 10.0 + LEASE) is None
    assert found.connect_down(contact(9), NYM, 10.0 + LEASE)
    assert found.outstayed(peer(3), 10.0 + LEASE) == peer(4)


NYMS = [AuthorId(bytes([65 + n]) * 32) for n in range(4)]
PEERS = [PeerId(bytes([97 + n]) * 32) for n in range(4)]
BOTH = int(Flag.FIRST | Flag.LAST)


class Members:
    """The document's test over a list of changes, counting how often it is asked."""

    def __init__(self) -> None:
        self.changes: list[tuple[AuthorId, bool, int, int]] = []
        """Who, whether they join, announced at, effective since."""
        self.known = 0
        self.asked = 0

    def test(self, nym: AuthorId, message: int, generation: int) -> Verdict:
        self.asked += 1
        if generation > self.known:
            return Verdict.UNKNOWN
        mine = [each for each in self.changes if each[0] == nym and each[3] <= message]
        return Verdict.YES if mine and max(mine, key=lambda each: each[2])[1] else Verdict.NO


def head(fragment: int, message: int, generation: int, change: Change | None = None) -> Head:
    return Head(1, fragment, message, 0, generation, BOTH, change)


class Targets(NamedTuple):
    peers: list[PeerId]
    records: list[Record]


class Relays(RelayFilter):
    """Who fragments are passed on to, and the outbox: it asks for nothing but records behind the commit."""

    def __init__(self, members: Members) -> None:
        self.out = Outbox()
        super().__init__(PLACE, members, self.out)

    def targets(self, head: Head, source: PeerId | None) -> Targets:
        found = Targets(self.find_targets(head, source), [])
        for effect in self.out.take():
            assert isinstance(effect, AfterCommit)
            (record,) = effect.effects
            assert isinstance(record, Record)
            found.records.append(record)
        return found


def setting(members: int = 3) -> tuple[Members, Relays]:
    found = Members()
    relaying = Relays(found)
    for nym, peer in zip(NYMS[:members], PEERS[:members], strict=True):
        found.changes.append((nym, True, 1, 0))
        relaying.join(peer, nym)
    return found, relaying


def test_no_query_while_the_generation_is_unchanged_and_all_again_when_it_changed() -> None:
    members, relaying = setting()
    for fragment in range(100):
        assert relaying.targets(head(fragment, fragment + 1, 0), None) == (PEERS[:3], [])
    assert members.asked == 3
    members.known = 1
    for fragment in range(100, 200):
        assert relaying.targets(head(fragment, fragment + 1, 1), None) == (PEERS[:3], [])
    assert members.asked == 6


def test_nothing_goes_back_where_it_came_from() -> None:
    members, relaying = setting()
    assert relaying.targets(head(0, 1, 0), PEERS[1]).peers == [PEERS[0], PEERS[2]]
    assert members.asked == 2
    relaying.leave(PEERS[0])
    assert relaying.targets(head(1, 2, 0), None).peers == [PEERS[1], PEERS[2]]


def test_no_and_unknown_are_withheld_with_one_record_for_each_member_and_generation() -> None:
    members, relaying = setting(2)
    relaying.join(PEERS[3], NYMS[3])  # never let in
    found = [relaying.targets(head(n, n + 1, 0), None) for n in range(3)]
    no = Record(
        Kind.DROPPED,
        PLACE,
        peer=PEERS[3],
        reason=Reason.NOT_A_MEMBER,
        note="withheld from generation 0 on, fragment 0",
    )
    assert [each.records for each in found] == [[no], [], []]
    assert [each.peers for each in found] == [PEERS[:2]] * 3
    found = [relaying.targets(head(n, n + 1, 1), None) for n in range(3, 6)]  # the removal is missing here
    assert [each.peers for each in found] == [[]] * 3
    assert [[each.reason for each in one.records] for one in found] == [
        [Reason.MISSING_DEPENDENCY] * 3,
        [],
        [],
    ]
    members.known = 1
    assert relaying.targets(head(6, 7, 1), None).peers == PEERS[:2]


def test_who_is_removed_gets_the_notice_and_nothing_after() -> None:
    """The upload 100, 101, 103 of message 40, and between its pieces the removal of one member."""
    members, relaying = setting(2)
    members.known = 3
    notice = head(102, 41, 3, Change(NYMS[0], False, 0))
    got: dict[int, list[PeerId]] = {}
    for each in (head(100, 40, 3), head(101, 40, 3), notice, head(103, 40, 4)):
        if each is notice:  # stored before it is passed on
            members.changes.append((NYMS[0], False, 41, 0))
            members.known = 4
        got[each.fragment] = relaying.targets(each, None).peers
    assert got == {100: PEERS[:2], 101: PEERS[:2], 102: PEERS[:2], 103: [PEERS[1]]}
    assert relaying.targets(head(101, 40, 3), None).peers == [PEERS[1]]  # and nothing late, either


def test_the_notice_reaches_whom_it_is_about_also_without_memory() -> None:
    members, relaying = setting(1)
    members.changes.append((NYMS[0], False, 5, 0))
    members.known = 1
    assert relaying.targets(head(4, 5, 0, Change(NYMS[0], False, 0)), None).peers == PEERS[:1]
    assert relaying.targets(head(5, 6, 0), None).peers == []


def test_a_late_fragment_from_before_the_join_is_not_covered_by_the_memory() -> None:
    members, relaying = setting(0)
    members.changes.append((NYMS[0], True, 48, 48))
    relaying.join(PEERS[0], NYMS[0])
    assert relaying.targets(head(50, 50, 0), None).peers == PEERS[:1]
    assert relaying.targets(head(45, 45, 0), None).peers == []
    assert relaying.targets(head(51, 51, 0), None).peers == PEERS[:1]
    assert members.asked == 2
    assert relaying.targets(head(49, 49, 0), None).peers == PEERS[:1]
    assert relaying.targets(head(48, 49, 0), None).peers == PEERS[:1]
    assert members.asked == 3


def test_a_join_in_the_same_generation_opens_at_once() -> None:
    members, relaying = setting(0)
    relaying.join(PEERS[0], NYMS[0])
    assert relaying.targets(head(0, 1, 0), None).peers == []
    members.changes.append((NYMS[0], True, 2, 2))
    assert relaying.targets(head(1, 2, 0), None).peers == PEERS[:1]


def test_everybody_is_tested_again_when_the_line_changed() -> None:
    members, relaying = setting(1)
    relaying.targets(head(0, 1, 0), None)
    members.changes.clear()  # the term in which it was let in is orphaned
    relaying.forget()
    assert relaying.targets(head(1, 2, 0), None).peers == []
