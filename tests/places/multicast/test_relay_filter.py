"""Fragments go to members only, and the test is asked again only when it could say something else."""

from __future__ import annotations

from typing import NamedTuple

from linnet.core.effects import AfterCommit
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.places.multicast.fragmentation import Change, Flag, Head
from linnet.places.multicast.relay_filter import RelayFilter, Verdict
from linnet.trace.records import Kind, Record

PLACE = TopicId(b"t" * 32)
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
    assert relaying.peers == (PEERS[1], PEERS[2])


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
