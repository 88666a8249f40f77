"""One answer to each request, once all is known."""

from __future__ import annotations

from tests.rooms.relay.scenes import peer_of

from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.rooms.messages import RelayOutcome, RelayTaken
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.ingest import Answers
from linnet.rooms.relay.pending_events import Origin
from linnet.testing.rooms import person

ROOM = TopicId(b"r" * 32)
ANN = Caller(peer_of("ann"), person("ann").author)
ONE, TWO = (RelayOutcome(EventId(each * 32), None, Reason.BANNED, ()) for each in (b"1", b"2"))


def test_the_last_outcome_completes_the_answer() -> None:
    answers = Answers(ROOM)
    assert answers.begin(ANN, 7, 2) is None
    origin = Origin(ANN, False, 7)
    assert answers.settle(origin, ONE) is None
    assert len(answers) == 1
    assert answers.settle(origin, TWO) == RelayTaken(ROOM, 7, (ONE, TWO), None)
    assert (len(answers), answers.settle(origin, TWO)) == (0, None)


def test_nothing_is_answered_at_once_and_what_was_fetched_never() -> None:
    answers = Answers(ROOM)
    assert answers.begin(ANN, 7, 0) == RelayTaken(ROOM, 7, (), None)
    assert answers.settle(Origin(ANN, False, None), ONE) is None


def test_requests_of_one_peer_by_two_ways_are_two() -> None:
    answers = Answers(ROOM)
    other = ANN._replace(linked=False)
    answers.begin(ANN, 7, 2)
    answers.begin(other, 7, 1)
    assert answers.settle(Origin(other, False, 7), ONE) == RelayTaken(ROOM, 7, (ONE,), None)


def test_a_link_that_ends_waits_for_nothing() -> None:
    answers = Answers(ROOM)
    answers.begin(ANN, 7, 1)
    answers.handle_link_down(ANN.peer)
    assert len(answers) == 0
