"""The four ways in which a replay ends, and the rate of one member."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.errors import StoreError
from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.machine.outbox import Outbox
from linnet.places.channel.membership import Verdict
from linnet.places.messages import Code, Replay, Replayed
from linnet.places.multicast.fragment_repair import ASKERS, Found, ReplayServer
from linnet.places.multicast.fragmentation import Change, Flag, Head
from linnet.trace.records import Kind, Record

PLACE = TopicId(b"t" * 32)
PEER = PeerId(b"p" * 32)
ANNA, BOB, CARL = (AuthorId(letter * 32) for letter in (b"a", b"b", b"c"))
BOTH = int(Flag.FIRST | Flag.LAST)


def found(fragment: int, message: int, offset: int, generation: int, change: Change | None = None) -> Found:
    tails = (b"%010d" % fragment,)
    unit = Unverified(PLACE, ANNA, DeviceId(b"d" * 8), fragment, None, tails, bytes(64))
    return Found(unit, Head(1, fragment, message, offset, generation, BOTH, change), None)


STORED = [
    found(0, 1, 0, 0),
    found(1, 2, 0, 0),
    found(2, 2, 100, 0),
    found(3, 3, 0, 0, Change(BOB, False, 0)),
    found(4, 4, 0, 9),
]


def find(asked: Replay) -> Found | None:
    """What is held, in a store that fails at one number."""
    if asked.fragment == 99:
        raise StoreError("the disk is gone")
    if asked.fragment is not None:
        return STORED[asked.fragment] if asked.fragment < len(STORED) else None
    hits = [each for each in STORED if (each.head.message, each.head.offset) == (asked.message, asked.offset)]
    return hits[0] if hits else None


class Members:
    """Anna is a member from message 2 on, Bob was one."""

    def __init__(self) -> None:
        self.asked = 0

    def test(self, nym: AuthorId, message: int, generation: int) -> Verdict:
        self.asked += 1
        if generation > 1:
            return Verdict.UNKNOWN
        return Verdict.YES if nym == ANNA and message >= 2 else Verdict.NO


class Answer(NamedTuple):
    """What goes back behind the commit, and what was noted before it."""

    message: Replayed
    record: Record | None
    blame: Blame | None = None


class Server(ReplayServer):
    """Answers, and their outbox."""

    def __init__(self, members: Members, rate: float = 2000.0) -> None:
        self.out = Outbox()
        super().__init__(PLACE, find, members, self.out, rate)

    def answer(self, peer: PeerId, nym: AuthorId | None, question: Replay, now: float) -> Answer:
        self.answer_replay(peer, nym, question, now)
        *noted, answer = self.out.take()
        assert isinstance(answer, AfterCommit)
        (send,) = answer.effects
        assert isinstance(send, Send)
        assert send.peer == peer
        assert isinstance(send.message, Replayed)
        record = noted.pop(0) if noted and isinstance(noted[0], Record) else None
        assert record is None or isinstance(record, Record)
        blame = noted.pop(0) if noted else None
        assert blame is None or isinstance(blame, Blame)
        assert noted == []
        return Answer(send.message, record, blame)


def replaying(rate: float = 2000.0) -> Server:
    return Server(Members(), rate)


def ask(fragment: int | None, message: int = 0, offset: int = 0) -> Replay:
    return Replay(PLACE, 7, fragment, message, offset, 0)


def refusal(code: Code, reason: Reason | None, note: str = "") -> Answer:
    record = None if reason is None else Record(Kind.REJECTED, PLACE, peer=PEER, reason=reason, note=note)
    return Answer(Replayed(PLACE, 7, code, None, None), record)


@pytest.mark.parametrize(
    ("nym", "question", "answer"),
    [
        (ANNA, ask(1), Answer(Replayed(PLACE, 7, Code.OK, STORED[1].unit, None), None)),
        (ANNA, ask(77), refusal(Code.NOT_FOUND, None)),
        (ANNA, ask(None, 2, 99), refusal(Code.NOT_FOUND, None)),
        (ANNA, ask(0), refusal(Code.ACCESS_DENIED, Reason.NOT_A_MEMBER, "replay of fragment 0")),
        (BOB, ask(None, 2), refusal(Code.ACCESS_DENIED, Reason.NOT_A_MEMBER, "replay of fragment 1")),
        (ANNA, ask(99), refusal(Code.INTERNAL_ERROR, Reason.NO_STORAGE, "the disk is gone")),
        (
            ANNA,
            ask(4),
            refusal(Code.INTERNAL_ERROR, Reason.MISSING_DEPENDENCY, "generation 9 is not known"),
        ),
    ],
)
def test_every_code_is_reached(nym: AuthorId, question: Replay, answer: Answer) -> None:
    assert replaying().answer(PEER, nym, question, 0.0) == answer


def test_by_message_and_offset_the_very_bytes_that_came_are_given() -> None:
    answer = replaying().answer(PEER, ANNA, ask(None, 2, 100), 0.0)
    assert answer.message.unit is STORED[2].unit


def test_who_left_may_have_the_notice_of_it_and_nothing_else() -> None:
    codes = [replaying().answer(PEER, who, ask(3), 0.0).message.code for who in (BOB, CARL)]
    assert codes == [Code.OK, Code.ACCESS_DENIED]


def test_every_replay_is_tested() -> None:
    members = Members()
    served = Server(members)
    for _ in range(5):
        served.answer(PEER, ANNA, ask(1), 0.0)
    assert members.asked == 5


def test_past_the_rate_one_member_is_told_that_we_are_busy_and_others_are_served() -> None:
    served = replaying(rate=4.0)
    answers = [served.answer(PEER, ANNA, ask(1), 0.0) for _ in range(5)]
    assert [each.message.code for each in answers] == [Code.OK] * 2 + [Code.INTERNAL_ERROR] * 3
    assert [each.record and each.record.reason for each in answers[2:]] == [Reason.FLOODING, None, None]
    assert [each.blame for each in answers] == [None] * 2 + [Blame(PEER, Reason.FLOODING)] * 3
    assert served.answer(PEER, BOB, ask(3), 0.0).message.code is Code.OK
    assert served.answer(PEER, ANNA, ask(1), 0.25).message.code is Code.OK
    assert served.answer(PEER, ANNA, ask(1), 0.25).message.code is Code.INTERNAL_ERROR


def test_the_memory_of_askers_is_bounded() -> None:
    served = replaying(rate=2.0)
    served.answer(PEER, ANNA, ask(1), 0.0)
    assert served.answer(PEER, ANNA, ask(1), 0.0).message.code is Code.INTERNAL_ERROR
    for number in range(ASKERS):
        served.answer(PEER, AuthorId(number.to_bytes(32, "big")), ask(77), 0.0)
    assert served.answer(PEER, ANNA, ask(1), 0.0).message.code is Code.OK  # forgotten, and new
