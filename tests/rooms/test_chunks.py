"""Pieces at a member: kept, served to members, fetched from one source after the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driven import Driven

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Reply, Send, SetTimer
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined, Done
from linnet.rooms import chunks as chunks_module
from linnet.rooms.attachments import Piece, piece_of
from linnet.rooms.chunks import PARALLEL, ChunkDue, Chunks, FetchDue, OfferDue
from linnet.rooms.commands import ChunkFetched, FetchChunk, KeepChunk
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import CHUNK_BYTES, ChunkIs, ChunkPut, ChunkTaken, ChunkWant
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

ROOM = TopicId(b"r" * 32)
P1, P2, P3, RELAY = (PeerId(letter * 32) for letter in (b"1", b"2", b"3", b"R"))
CONFIG = RoomsConfig(chunk_bytes=64 * 1024, chunk_timeout=5.0)


def piece(number: int) -> Piece:
    return piece_of(b"piece %d" % number)


def asks(peer: PeerId, number: int = 0) -> Send[ChunkWant]:
    return Send(peer, ChunkWant(ROOM, (piece(number).digest,)))


def wait(seconds: float = 5.0) -> SetTimer[ChunkDue]:
    return SetTimer(seconds, ChunkDue(ROOM))


def patience(request: int) -> FetchDue:
    return FetchDue(ROOM, request)


def dropped(reason: Reason) -> Record:
    return Record(Kind.DROPPED, ROOM, reason=reason, note="piece")


class Scene:
    """A member that keeps, gives and fetches pieces."""

    def __init__(self, config: RoomsConfig = CONFIG) -> None:
        self.cells = MemoryStore().cells
        self.config = config
        self.sources: dict[PeerId, None] = {}
        self.restart()

    def restart(self) -> None:
        self.chunks = Driven(
            lambda out: Chunks(ROOM, self.cells, self.config, lambda: tuple(self.sources), out)
        )

    def keep(self, number: int, request: int = 1) -> list[Any]:
        effects: list[Any] = self.chunks.keep_chunk(
            request, KeepChunk(ROOM, piece(number).digest, piece(number).data), 1.0
        )
        return effects

    def fetch(self, request: int, number: int, *sources: PeerId) -> list[Any]:
        self.sources.update(dict.fromkeys(sources))
        effects: list[Any] = self.chunks.fetch_chunk(
            request, FetchChunk(ROOM, piece(number).digest, 20.0), 0.0
        )
        return effects

    def loses(self, peer: PeerId, now: float = 1.0) -> list[Any]:
        self.sources.pop(peer, None)
        effects: list[Any] = self.chunks.remove_source(peer, now)
        return effects

    def waits_until(self, now: float) -> list[Any]:
        effects: list[Any] = self.chunks.handle_timer(now)
        return effects

    def ends(self, request: int) -> list[Any]:
        effects: list[Any] = self.chunks.end_request(request, 20.0)
        return effects

    def gives(self, peer: PeerId, number: int) -> list[Any]:
        effects: list[Any] = self.chunks.handle_chunk(
            peer, ChunkIs(ROOM, piece(number).digest, piece(number).data, None), 2.0
        )
        return effects

    def lacks(self, peer: PeerId, number: int = 0) -> list[Any]:
        effects: list[Any] = self.chunks.handle_chunk(
            peer, ChunkIs(ROOM, piece(number).digest, None, Reason.NOT_HELD), 2.0
        )
        return effects


# Keeping and serving.


def test_a_kept_piece_is_offered_and_answered_once_it_is_durable() -> None:
    scene = Scene()
    scene.chunks.offers.use_relays([RELAY], 0.0)
    offer = Send(RELAY, ChunkPut(ROOM, piece(0).digest, piece(0).data))
    timer = SetTimer(5.0, OfferDue(ROOM, RELAY))
    assert scene.keep(0) == [offer, timer, AfterCommit((Reply(1, Done()),))]
    scene.chunks.offers.handle_timeout(RELAY, 5.0)
    assert scene.chunks.out.take() == [offer, timer]
    scene.chunks.offers.handle_answer(RELAY, ChunkTaken(ROOM, piece(0).digest, None), 6.0)
    assert scene.chunks.out.take() == []
    assert scene.chunks.store.offered == []


def test_the_largest_piece_is_kept_and_one_byte_more_is_not() -> None:
    scene = Scene(RoomsConfig())
    largest, larger = piece_of(bytes(CHUNK_BYTES)), piece_of(bytes(CHUNK_BYTES + 1))
    kept = scene.chunks.keep_chunk(1, KeepChunk(ROOM, largest.digest, largest.data), 1.0)
    assert kept == [AfterCommit((Reply(1, Done()),))]
    record, reply = scene.chunks.keep_chunk(2, KeepChunk(ROOM, larger.digest, larger.data), 1.0)
    assert record == dropped(Reason.TOO_LARGE)
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Declined)
    assert reply.result.reason is Reason.TOO_LARGE


def test_a_piece_under_a_wrong_name_is_declined() -> None:
    scene = Scene()
    record, reply = scene.chunks.keep_chunk(1, KeepChunk(ROOM, bytes(32), b"x"), 1.0)
    detail = "a piece that is not what its digest names"
    assert (record, reply) == (dropped(Reason.MALFORMED), Reply(1, Declined(Reason.MALFORMED, detail)))


def test_a_room_that_is_full_declines() -> None:
    scene = Scene(RoomsConfig(chunk_bytes=2 * 4096))
    scene.keep(0)
    scene.keep(1)
    record, reply = scene.keep(2, request=7)
    assert isinstance(record, Record)
    assert (record.kind, record.reason) == (Kind.DROPPED, Reason.QUOTA)
    detail = "the attachments of this room fill the 8192 bytes they may have"
    assert reply == Reply(7, Declined(Reason.QUOTA, detail))


def test_members_are_given_what_is_there() -> None:
    scene = Scene()
    scene.keep(0)
    want = ChunkWant(ROOM, (piece(0).digest, piece(1).digest))
    assert scene.chunks.handle_want(P1, want, member=True) == [
        Send(P1, ChunkIs(ROOM, piece(0).digest, piece(0).data, None)),
        Send(P1, ChunkIs(ROOM, piece(1).digest, None, Reason.NOT_HELD)),
    ]


def test_others_are_given_nothing() -> None:
    scene = Scene()
    scene.keep(0)
    reason = Reason.NOT_A_MEMBER
    assert scene.chunks.handle_want(P1, ChunkWant(ROOM, (piece(0).digest,)), member=False) == [
        Record(Kind.REJECTED, ROOM, peer=P1, reason=reason, note="pieces asked for"),
        Send(P1, ChunkIs(ROOM, piece(0).digest, None, reason)),
    ]


# Fetching.


def test_a_fetched_piece_is_kept_and_not_fetched_again() -> None:
    scene = Scene()
    assert scene.fetch(1, 0, P1) == [SetTimer(20.0, patience(1)), asks(P1), wait()]
    answer = AfterCommit((Reply(1, ChunkFetched(piece(0).data)),))
    assert scene.gives(P1, 0) == [CancelTimer(patience(1)), answer]
    scene.restart()
    assert scene.fetch(2, 0, P1) == [Reply(2, ChunkFetched(piece(0).data))]
    assert scene.chunks.store.offered == []


def test_whoever_lacks_it_or_is_silent_is_passed_over() -> None:
    scene = Scene()
    _, first, _ = scene.fetch(1, 0, P1, P2, P3)
    assert first == asks(P1)
    assert scene.lacks(P2) == []
    assert scene.lacks(P1) == [asks(P3)]
    assert scene.waits_until(4.0) == [wait(3.0)]
    assert scene.waits_until(7.0) == [asks(P2), wait()]
    assert scene.gives(P3, 0)[-1] == AfterCommit((Reply(1, ChunkFetched(piece(0).data)),))
    late = Record(Kind.DUPLICATE, ROOM, peer=P1, bytes=len(piece(0).data), note="piece")
    assert scene.gives(P1, 0) == [late]


def test_a_piece_that_finds_no_room_is_still_handed_over() -> None:
    scene = Scene(RoomsConfig(chunk_bytes=4096))
    scene.keep(9)
    scene.fetch(1, 0, P1)
    fetched = ChunkFetched(piece(0).data)
    no_room = Record(
        Kind.DROPPED, ROOM, bytes=len(piece(0).data), reason=Reason.QUOTA, note="no room for a piece"
    )
    assert scene.gives(P1, 0) == [
        no_room,
        CancelTimer(patience(1)),
        AfterCommit((Reply(1, fetched),)),
    ]


def test_a_source_that_comes_meanwhile_is_asked_too() -> None:
    scene = Scene()
    scene.fetch(1, 0, P1)
    scene.sources[P2] = None
    assert scene.lacks(P1) == [asks(P2)]
    assert Reply(1, Declined(Reason.NOT_HELD, "none of 2 that were asked gave the piece")) in scene.lacks(P2)


def test_when_all_lack_it_that_is_the_answer() -> None:
    scene = Scene()
    scene.fetch(1, 0, P1, P2)
    scene.lacks(P1)
    detail = "none of 2 that were asked gave the piece"
    assert scene.lacks(P2) == [
        CancelTimer(patience(1)),
        dropped(Reason.NOT_HELD),
        Reply(1, Declined(Reason.NOT_HELD, detail)),
    ]


def test_when_somebody_was_silent_the_answer_is_that_it_took_too_long() -> None:
    scene = Scene()
    scene.fetch(1, 0, P1, P2)
    scene.waits_until(5.0)
    assert Reply(1, Declined(Reason.TIMEOUT, "none of 2 that were asked gave the piece")) in scene.lacks(P2)


def test_without_anybody_to_ask_it_is_declined_at_once() -> None:
    scene = Scene()
    detail = "none of 0 that were asked gave the piece"
    assert Reply(1, Declined(Reason.NOT_HELD, detail)) in scene.fetch(1, 0)


def test_a_wrong_piece_is_blamed_and_another_is_asked() -> None:
    scene = Scene()
    scene.fetch(1, 0, P1, P2)
    wrong = ChunkIs(ROOM, piece(0).digest, b"wrong", None)
    rejected = Record(Kind.REJECTED, ROOM, peer=P1, reason=Reason.MALFORMED, note="piece")
    blame = Blame(P1, Reason.MALFORMED)
    assert scene.chunks.handle_chunk(P1, wrong, 2.0) == [rejected, blame, asks(P2)]
    assert scene.chunks.handle_chunk(P1, wrong, 2.0) == [rejected, blame]
    assert scene.chunks.store.get(piece(0).digest) is None


def test_a_command_waits_no_longer_than_it_says() -> None:
    scene = Scene()
    scene.fetch(1, 0, P1, P2)
    scene.fetch(2, 0, P1, P2)
    timeout = Declined(Reason.TIMEOUT, "nobody gave the piece in time")
    assert scene.ends(1) == [dropped(Reason.TIMEOUT), Reply(1, timeout)]
    ended = [dropped(Reason.TIMEOUT), Reply(2, timeout)]
    assert scene.ends(2) == ended
    assert scene.ends(2) == []
    assert scene.waits_until(5.0) == []


def test_two_commands_for_one_piece_cost_one_question() -> None:
    scene = Scene()
    scene.fetch(1, 0, P1)
    assert scene.fetch(2, 0, P1) == [SetTimer(20.0, patience(2))]
    fetched = ChunkFetched(piece(0).data)
    answers = [AfterCommit((Reply(1, fetched),)), AfterCommit((Reply(2, fetched),))]
    assert scene.gives(P1, 0)[-2:] == answers


def test_only_so_many_pieces_are_asked_for_at_the_same_time() -> None:
    scene = Scene()
    for number in range(PARALLEL):
        assert asks(P1, number) in scene.fetch(number, number, P1)
    assert scene.fetch(90, 90, P1) == [SetTimer(20.0, patience(90))]
    assert scene.gives(P1, 3)[-1] == asks(P1, 90)


def test_too_many_commands_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks_module, "REQUESTS", 2)
    scene = Scene()
    scene.fetch(1, 0, P1)
    scene.fetch(2, 0, P1)
    too_many = Declined(Reason.TOO_MANY, "2 pieces are waited for already")
    assert scene.fetch(3, 1, P1) == [dropped(Reason.TOO_MANY), Reply(3, too_many)]
    scene.gives(P1, 0)
    assert asks(P1, 1) in scene.fetch(3, 1, P1)


def test_many_that_nobody_is_left_for_all_end() -> None:
    scene = Scene()
    for number in range(1000):
        scene.fetch(number, number, P1)
    replies = [effect for effect in scene.loses(P1) if isinstance(effect, Reply)]
    assert [reply.request for reply in replies] == list(range(1000))
    assert scene.fetch(1, 0, P1)[1:] == [asks(P1)]


def test_load_is_spread_and_who_gave_before_comes_first() -> None:
    scene = Scene()
    firsts = [scene.fetch(number, number, P1, P2)[1] for number in range(4)]
    assert firsts == [asks(P1, 0), asks(P2, 1), asks(P1, 2), asks(P2, 3)]
    scene.gives(P1, 1)
    assert [scene.fetch(number, number, P1, P2)[1] for number in (4, 5)] == [asks(P1, 4), asks(P1, 5)]
    scene.loses(P1)
    assert asks(P2, 6) in scene.fetch(6, 6, P1, P2) + scene.fetch(7, 6, P1, P2)


def test_all_who_gave_before_come_before_the_others() -> None:
    scene = Scene()
    scene.fetch(0, 0, P1, P2, P3)
    scene.fetch(1, 1, P1, P2, P3)
    scene.gives(P3, 0)
    scene.gives(P2, 1)
    first = scene.fetch(2, 2)[1].peer
    second = scene.lacks(first, 2)[0].peer
    assert {first, second} == {P2, P3}
    assert scene.lacks(second, 2) == [asks(P1, 2)]


def test_stopping_answers_whoever_waits() -> None:
    scene = Scene()
    scene.fetch(1, 0, P1)
    gone = Declined(Reason.SHUTDOWN, "the room is no longer followed")
    assert scene.chunks.stop() == [
        CancelTimer(patience(1)),
        dropped(Reason.SHUTDOWN),
        Reply(1, gone),
        CancelTimer(ChunkDue(ROOM)),
    ]
    assert scene.chunks.stop() == []


MOVES = st.one_of(
    st.tuples(st.just("fetch"), st.integers(0, 30), st.lists(st.sampled_from([P1, P2, P3]), unique=True)),
    st.tuples(st.just("gives"), st.integers(0, 30), st.sampled_from([P1, P2, P3])),
    st.tuples(st.just("lacks"), st.integers(0, 30), st.sampled_from([P1, P2, P3])),
    st.tuples(st.just("late"), st.integers(0, 30), st.just(P1)),
    st.tuples(st.just("down"), st.just(0), st.sampled_from([P1, P2, P3])),
    st.tuples(st.just("patience"), st.integers(0, 40), st.just(P1)),
)


@given(st.lists(MOVES, max_size=60))
def test_every_command_is_answered_once(moves: list[tuple[str, int, PeerId | list[PeerId]]]) -> None:
    scene = Scene()
    asked = 0
    answered: list[int] = []

    def note(effects: list[Any]) -> None:
        for effect in effects:
            inner = effect.effects if isinstance(effect, AfterCommit) else (effect,)
            answered.extend(each.request for each in inner if isinstance(each, Reply))

    for what, number, whom in moves:
        if what == "fetch":
            note(scene.fetch(asked, number, *whom))
            asked += 1
        elif what == "gives":
            note(scene.gives(whom, number))  # type: ignore[arg-type]
        elif what == "lacks":
            note(scene.lacks(whom, number))  # type: ignore[arg-type]
        elif what == "late":
            note(scene.waits_until(5.0))
        elif what == "down":
            note(scene.loses(whom))  # type: ignore[arg-type]
        else:
            note(scene.ends(number))
    note(scene.chunks.stop())
    assert sorted(answered) == list(range(asked))
