"""Parts of a node: what is marked is heard, by one part alone; effects wait in one outbox."""

from __future__ import annotations

import pytest

from linnet.core.effects import AfterCommit, CancelTimer, Deliver, Dial, HangUp, Reply, Send, SetTimer
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.hello import Hello
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message, TopicMessage
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.commands import Declined, SubscriptionCommand, carry_out
from linnet.machine.outbox import Notice, Outbox, Promises, TopicNotice
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.machine.router import Router, table_of
from linnet.trace.records import Kind, Record

ANN, BEN = PeerId(b"a" * 32), PeerId(b"b" * 32)
TEA = TopicId(b"t" * 32)
UP = LinkUp(ANN, Hello(1, 1, {}), True, None)


class Knock(Message, frozen=True, tag=1):
    """A message."""

    number: int


class Answer(Message, frozen=True, tag=2):
    """Another."""

    number: int


class Tired(Timer, frozen=True):
    """A timer."""

    who: str


class Bored(Timer, frozen=True):
    """One with the same fields."""

    who: str


class Curious(Timer, frozen=True):
    """A third."""


class Count(Notice, frozen=True):
    """What one part tells another."""

    number: int


class Visited(TopicNotice, frozen=True):
    """What one part tells another of a topic."""

    number: int


class Ring:
    """A command: anything is one."""


class Shut:
    """A command that is not carried out."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Door(Part):
    """Hears knocks, and tells of them."""

    def __init__(self, out: Outbox) -> None:
        self._out = out

    @on_message(Knock)
    def open_door(self, peer: PeerId, message: Knock, now: float) -> None:
        if message.number < 0:
            self._out.send(peer, Answer(0))
            raise ValueError("a knock below zero")
        self._out.notify(Count(message.number))
        self._out.send(peer, Answer(message.number))

    @on_timer(Tired)
    def rest(self, timer: Tired, now: float) -> None:
        self._out.cancel_timer(timer)

    @on_command(Ring)
    def ring(self, request: int, command: Ring, now: float) -> None:
        self._out.committed.reply(request, "ding")

    @on_command(Shut)
    def shut(self, request: int, command: Shut, now: float) -> None:
        self._out.send(ANN, Answer(0))
        self._out.notify(Count(9))
        raise command.error

    @on_timer(Curious)
    def look_around(self, timer: Curious, now: float) -> None:
        self._out.send(ANN, Answer(1))
        self._out.notify(Count(1))
        self._out.notify(Visited(TEA, 5))
        self._out.send(ANN, Answer(2))
        self._out.notify(Visited(TEA, 6))

    @on_input(LinkUp)
    def greet(self, event: LinkUp, now: float) -> None:
        self._out.record(Record(Kind.CONTROL, note="door"))


class Counter(Part):
    """Counts what it is told."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self.told: list[int] = []

    @on_notice(Count)
    def count(self, notice: Count, now: float) -> None:
        self.told.append(notice.number)
        if notice.number > 1:
            self._out.notify(Count(notice.number - 1))
        self._out.set_timer(float(notice.number), Tired("counter"))

    @on_notice(Visited)
    def visit(self, notice: Visited, now: float) -> None:
        self._out.send(BEN, Answer(notice.number))
        if notice.number == 5:
            self._out.notify(Visited(notice.topic, 50))
            self._out.send(BEN, Answer(500))

    @on_input(LinkUp)
    def note(self, event: LinkUp, now: float) -> None:
        self._out.record(Record(Kind.CONTROL, note="counter"))

    @on_input(LinkDown)
    def forget(self, event: LinkDown, now: float) -> None:
        self.told.clear()


class Rival(Part):
    """Claims what the door hears."""

    @on_message(Knock)
    def open_door(self, peer: PeerId, message: Knock, now: float) -> None:
        """Never."""


def house() -> tuple[Outbox, Counter, Router]:
    out = Outbox()
    counter = Counter(out)
    return out, counter, Router(out, (Door(out), counter))


def test_a_message_goes_to_the_part_that_marks_it_and_notices_follow_its_handler() -> None:
    out, counter, router = house()
    router.message(ANN, Knock(2), 0.0)
    assert counter.told == [2, 1], "what a notice brings about is told as well"
    assert out.take() == [
        Send(ANN, Answer(2)),
        SetTimer(2.0, Tired("counter")),
        SetTimer(1.0, Tired("counter")),
    ]
    assert out.take() == []


def test_what_comes_of_a_notice_about_a_topic_stands_where_it_was_told() -> None:
    out, counter, router = house()
    router.timer(Curious(), 0.0)
    assert out.take() == [
        Send(ANN, Answer(1)),
        Send(BEN, Answer(5)),
        Send(BEN, Answer(50)),
        Send(BEN, Answer(500)),
        Send(ANN, Answer(2)),
        Send(BEN, Answer(6)),
        SetTimer(1.0, Tired("counter")),
    ]
    assert counter.told == [1]
    assert not out.notices


def test_timers_and_commands_go_by_their_type() -> None:
    out, _, router = house()
    router.timer(Tired("door"), 0.0)
    router.command(7, Ring(), 0.0)
    assert out.take() == [CancelTimer(Tired("door")), AfterCommit((Reply(7, "ding"),))]
    assert len({Tired("x"), Bored("x")}) == 2, "timers of two types are two timers"
    with pytest.raises(KeyError):
        router.timer(Bored("door"), 0.0)


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (Refused(Reason.TOO_MANY, "doors"), Reason.TOO_MANY, "doors"),
        (RemoteError(Reason.STALE, "keys"), Reason.STALE, "keys"),
        (BadText("not a door"), Reason.MALFORMED, "not a door"),
    ],
)
def test_a_command_that_is_refused_is_declined_and_nothing_of_it_is_done(
    error: Exception, reason: Reason, detail: str
) -> None:
    out, counter, router = house()
    router.timer(Tired("door"), 0.0)
    router.command(7, Shut(error), 0.0)
    assert out.take() == [CancelTimer(Tired("door")), Reply(7, Declined(reason, detail))]
    assert counter.told == []


def test_all_who_mark_a_link_hear_of_it_in_the_order_of_the_parts() -> None:
    out, counter, router = house()
    router.input(UP, 0.0)
    assert out.take() == [Record(Kind.CONTROL, note="door"), Record(Kind.CONTROL, note="counter")]
    counter.told.append(1)
    router.input(LinkDown(ANN, Reason.CRASHED), 0.0)
    router.input(DialFailed(ANN, Reason.CRASHED), 0.0)
    assert (out.take(), counter.told) == ([], [])


def test_two_parts_that_claim_one_type_are_an_error_when_the_first_node_is_made() -> None:
    out = Outbox()
    with pytest.raises(TypeError, match="two handlers of the message Knock"):
        Router(out, (Door(out), Rival()))


def test_nodes_with_the_same_parts_share_one_table() -> None:
    assert house()[2].table is house()[2].table is table_of((Door, Counter))


def test_what_a_failed_handler_asked_for_can_be_forgotten() -> None:
    out, counter, router = house()
    out.notify(Count(5))
    with pytest.raises(ValueError, match="below zero"):
        router.message(ANN, Knock(-1), 0.0)
    out.clear()
    router.message(ANN, Knock(1), 0.0)
    assert counter.told == [1]
    assert out.take() == [Send(ANN, Answer(1)), SetTimer(1.0, Tired("counter"))]


def test_what_was_said_since_a_mark_is_taken_with_the_notices_in_their_places() -> None:
    out = Outbox()
    out.hang_up(ANN, Reason.SHUTDOWN)
    out.notify(Count(1))
    before = out.mark()
    assert not out.has_told_since(before)
    out.dial(ANN, ())
    out.notify(Visited(TEA, 5))
    out.dial(BEN, ())
    assert out.has_told_since(before)
    assert out.take_said(before) == [Dial(ANN, (), False), Visited(TEA, 5), Dial(BEN, (), False)]
    assert not out.has_told_since(before)
    assert out.take_said() == [HangUp(ANN, Reason.SHUTDOWN), Count(1)]


def test_promises_are_gathered_and_made_as_one() -> None:
    out, promises = Outbox(), Promises()
    assert not promises
    record = Record(Kind.ONLINE)
    promises.record(record)
    promises.send(ANN, Knock(1))
    promises.deliver(3, ("tea",))
    promises.reply(7, "done")
    assert promises
    assert out.take() == []
    out.committed.extend(promises)
    assert out.take() == [AfterCommit((record, Send(ANN, Knock(1)), Deliver(3, ("tea",)), Reply(7, "done")))]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Refused(Reason.CONGESTED, "later"), Reason.CONGESTED),
        (RemoteError(Reason.STALE, "later"), Reason.STALE),
        (BadText("later"), Reason.MALFORMED),
    ],
)
def test_a_command_that_is_refused_half_way_leaves_the_outbox_as_it_was(
    error: Exception, reason: Reason
) -> None:
    out = Outbox()
    out.dial(BEN, ())

    def act() -> None:
        out.dial(ANN, ())
        out.notify(Count(1))
        raise error

    carry_out(out, 7, act)
    assert out.take_said() == [Dial(BEN, (), False), Reply(7, Declined(reason, "later"))]


class Word(TopicMessage, frozen=True, tag=3):
    """A message about a topic."""

    about: TopicId

    @property
    def topic(self) -> TopicId:
        return self.about


class Arrived(TopicNotice, frozen=True):
    """A notice about a topic."""


class Enough(SubscriptionCommand, frozen=True):
    """A command about a subscription."""


class Readers(Part):
    """Hears what is about its own, and the first of them what is nobody's."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self.own_topics: list[TopicId] = []
        self.own_subscriptions: list[int] = []

    def say(self, what: str) -> None:
        self._out.record(Record(Kind.CONTROL, note=f"{type(self).__name__}: {what}"))


class Club(Readers):
    """The first."""

    @on_message(Word)
    def handle_word(self, peer: PeerId, message: Word, now: float) -> None:
        self.say("word")

    @on_notice(Arrived)
    def handle_arrival(self, notice: Arrived, now: float) -> None:
        self.say("arrived")

    @on_command(Enough)
    def end(self, request: int, command: Enough, now: float) -> None:
        self.say("enough")


class Salon(Readers):
    """The second. Of arrivals it wants to know nothing."""

    @on_message(Word)
    def handle_word(self, peer: PeerId, message: Word, now: float) -> None:
        self.say("word")

    @on_command(Enough)
    def end(self, request: int, command: Enough, now: float) -> None:
        self.say("enough")


def noted(out: Outbox) -> list[str | None]:
    return [effect.note for effect in out.take() if isinstance(effect, Record)]


def test_what_is_about_a_topic_goes_to_the_part_that_holds_it() -> None:
    out = Outbox()
    salon = Salon(out)
    router = Router(out, (Club(out), salon))
    router.message(ANN, Word(TEA), 0.0)
    assert noted(out) == ["Club: word"], "nobody's: it goes to the first that marks it"
    salon.own_topics.append(TEA)
    router.message(ANN, Word(TEA), 0.0)
    router.message(ANN, Word(TopicId(bytes(32))), 0.0)
    out.notify(Arrived(TEA))
    router.pass_on_notices(0.0)
    assert noted(out) == ["Salon: word", "Club: word", "Club: arrived"]
    salon.own_topics.clear()
    router.message(ANN, Word(TEA), 0.0)
    assert noted(out) == ["Club: word"]


def test_what_is_asked_of_a_subscription_goes_to_the_part_that_reads_it() -> None:
    out = Outbox()
    salon = Salon(out)
    router = Router(out, (Club(out), salon))
    salon.own_subscriptions.append(3)
    router.command(1, Enough(3), 0.0)
    router.command(2, Enough(4), 0.0)
    assert noted(out) == ["Salon: enough", "Club: enough"]
    salon.own_subscriptions.clear()
    router.command(3, Enough(3), 0.0)
    assert noted(out) == ["Club: enough"]


class Twice(Part):
    """Marks one type in two places."""

    @on_message(Word)
    def handle_word(self, peer: PeerId, message: Word, now: float) -> None:
        """Never."""

    @on_message(Word)
    def handle_other(self, peer: PeerId, message: Word, now: float) -> None:
        """Never."""


def test_one_part_hears_a_type_in_one_place() -> None:
    with pytest.raises(TypeError, match="two handlers of the message Word"):
        table_of((Twice,))
