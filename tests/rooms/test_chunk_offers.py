"""Offering pieces to relays until one has taken them."""

from __future__ import annotations

from typing import Any

from tests.driven import Driven

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.rooms.attachments import Piece, piece_of
from linnet.rooms.chunk_store import ChunkStore
from linnet.rooms.chunks import TRIES, WINDOW, ChunkOffers, OfferDue
from linnet.rooms.messages import ChunkPut, ChunkTaken
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

ROOM = TopicId(b"r" * 32)
R1, R2 = PeerId(b"1" * 32), PeerId(b"2" * 32)
TIMEOUT = 5.0


def piece(number: int) -> Piece:
    return piece_of(b"%d" % number)


def put(relay: PeerId, number: int) -> Send[ChunkPut]:
    return Send(relay, ChunkPut(ROOM, piece(number).digest, piece(number).data))


def tick(relay: PeerId) -> OfferDue:
    return OfferDue(ROOM, relay)


def wait(relay: PeerId) -> SetTimer[OfferDue]:
    return SetTimer(TIMEOUT, tick(relay))


class Scene:
    """A member with pieces of its own."""

    def __init__(self, pieces: int) -> None:
        self.cells = MemoryStore().cells
        self.restart()
        for number in range(pieces):
            self.store.keep(piece(number).digest, piece(number).data, True, float(number))

    def restart(self) -> None:
        self.store = ChunkStore(ROOM, self.cells, 1_000_000, Outbox())
        self.offers = Driven(lambda out: ChunkOffers(ROOM, self.store, TIMEOUT, out))

    def taken(self, relay: PeerId, number: int, reason: Reason | None = None) -> list[Any]:
        answer = ChunkTaken(ROOM, piece(number).digest, reason)
        effects: list[Any] = self.offers.handle_answer(relay, answer, 10.0)
        return effects


def test_a_relay_that_comes_is_offered_what_waits() -> None:
    scene = Scene(2)
    assert scene.offers.use_relays([R1], 10.0) == [put(R1, 0), put(R1, 1), wait(R1)]
    assert scene.offers.use_relays([R1], 11.0) == []


def test_a_piece_that_comes_later_is_offered_to_all_relays_at_once() -> None:
    scene = Scene(0)
    scene.offers.use_relays([R1, R2], 10.0)
    scene.store.keep(piece(0).digest, piece(0).data, True, 10.0)
    sent = scene.offers.offer(piece(0).digest, 10.0)
    assert sent == [put(R1, 0), wait(R1), put(R2, 0), wait(R2)]
    assert scene.offers.offer(piece(0).digest, 10.0) == []


def test_only_so_many_are_on_their_way() -> None:
    scene = Scene(WINDOW + 2)
    first = scene.offers.use_relays([R1], 10.0)
    assert first == [*(put(R1, number) for number in range(WINDOW)), wait(R1)]
    assert scene.taken(R1, 0) == [put(R1, WINDOW)]
    assert scene.taken(R1, 1) == [put(R1, WINDOW + 1)]
    assert scene.taken(R1, 2) == []


def test_what_one_relay_has_taken_is_offered_to_nobody_again() -> None:
    scene = Scene(1)
    scene.offers.use_relays([R1], 10.0)
    assert scene.taken(R1, 0) == []
    assert scene.store.offered == []
    assert scene.offers.use_relays([R1, R2], 11.0) == []
    scene.restart()
    assert scene.offers.use_relays([R1], 12.0) == []


def test_what_was_not_taken_is_offered_again_after_a_reconnect_and_a_restart() -> None:
    scene = Scene(1)
    scene.offers.use_relays([R1], 10.0)
    assert scene.offers.use_relays([], 11.0) == [CancelTimer(tick(R1))]
    assert scene.offers.use_relays([R1], 12.0) == [put(R1, 0), wait(R1)]
    scene.restart()
    assert scene.offers.use_relays([R2], 13.0) == [put(R2, 0), wait(R2)]


def test_a_refusal_is_recorded_and_the_relay_not_asked_again() -> None:
    scene = Scene(1)
    scene.offers.use_relays([R1], 10.0)
    note = "a relay does not take a piece"
    refused = Record(Kind.DROPPED, ROOM, peer=R1, reason=Reason.QUOTA, note=note)
    assert scene.taken(R1, 0, Reason.QUOTA) == [refused]
    scene.offers.use_relays([], 11.0)
    assert scene.offers.use_relays([R1], 12.0) == []
    assert scene.offers.offer(piece(0).digest, 12.0) == []
    assert scene.offers.use_relays([R1, R2], 13.0) == [put(R2, 0), wait(R2)]
    assert scene.store.offered == [piece(0).digest]


def test_who_does_not_answer_is_sent_it_again_but_not_for_ever() -> None:
    scene = Scene(1)
    scene.offers.use_relays([R1], 0.0)
    for turn in range(1, TRIES):
        assert scene.offers.handle_timeout(R1, turn * TIMEOUT) == [put(R1, 0), wait(R1)]
    note = "a piece waits for another link to a relay"
    silent = Record(Kind.DROPPED, ROOM, peer=R1, reason=Reason.TIMEOUT, note=note)
    assert scene.offers.handle_timeout(R1, TRIES * TIMEOUT) == [silent]
    assert scene.offers.handle_timeout(R1, 9 * TIMEOUT) == []
    scene.offers.use_relays([], 50.0)
    assert scene.offers.use_relays([R1], 51.0) == [put(R1, 0), wait(R1)]


def test_what_was_sent_a_moment_ago_is_given_time() -> None:
    scene = Scene(WINDOW + 1)
    scene.offers.use_relays([R1], 6.0)
    scene.taken(R1, 0)  # the next one goes out at 10
    again = [put(R1, number) for number in range(1, WINDOW)]
    assert scene.offers.handle_timeout(R1, 11.0) == [*again, wait(R1)]


def test_an_answer_after_the_timer_still_counts() -> None:
    scene = Scene(1)
    scene.offers.use_relays([R1], 0.0)
    for turn in range(1, TRIES + 1):
        scene.offers.handle_timeout(R1, turn * TIMEOUT)
    assert scene.taken(R1, 0) == []
    assert scene.store.offered == []


def test_an_answer_to_no_offer_is_recorded() -> None:
    scene = Scene(1)
    stranger = Record(Kind.REJECTED, ROOM, peer=R2, reason=Reason.NOT_A_RELAY, note="an answer to no offer")
    assert scene.taken(R2, 0) == [stranger]
    assert scene.store.offered == [piece(0).digest]
    scene.offers.use_relays([R1], 10.0)
    (unknown,) = scene.taken(R1, 7)
    assert isinstance(unknown, Record)
    assert unknown.reason is Reason.NOT_HELD


def test_stopping_cancels_the_timers() -> None:
    scene = Scene(1)
    scene.offers.use_relays([R1, R2], 10.0)
    assert scene.offers.stop() == [CancelTimer(tick(R1)), CancelTimer(tick(R2))]
    assert scene.offers.handle_timeout(R1, 20.0) == []
