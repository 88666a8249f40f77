from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.due import Due

from linnet.core.effects import AfterCommit, Dial, Probe, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, DialFailed, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.peer.interface import Connect, Effect, Input, NodeMachine, Start
from linnet.peer.messages import Ping, Pong
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.nemesis.budget import (
    DIALS,
    STORM,
    STORM_STEPS,
    Account,
    Dials,
    Situation,
    Spent,
    Storm,
    allowed,
    most_spent,
    over_budget,
)
from linnet.sim.nemesis.course import WAYS, Course
from linnet.sim.nemesis.faults import Fault
from linnet.sim.nemesis.open_node import OpenMachine
from linnet.sim.nemesis.open_world import OpenWorld
from linnet.sim.nemesis.rooms import RoomsWay
from linnet.sim.nemesis.streams import StreamsWay
from linnet.trace.columns import ColumnTrace

PEER, OTHER = PeerId(b"p" * 32), PeerId(b"o" * 32)
HELLO = Hello(1, 1, {}, (), 1, (), "test")
NAMES = {PEER: "a", OTHER: "b"}
TICK = Due("timer")


def test_the_worst_minute_of_dials_is_found() -> None:
    dials = Dials()
    for second in (0.0, 1.0, 59.0, 61.0, 62.0, 200.0):
        dials.dial("a", PEER, second)
    assert dials.worst(60.0) == (3, "a", PEER)


def test_a_dial_that_is_answered_was_not_in_vain_and_those_before_were() -> None:
    dials = Dials()
    for second in range(4):
        dials.dial("a", PEER, second)
    dials.answer("a", PEER, dialed=True)
    dials.dial("a", PEER, 5.0)
    assert dials.worst(60.0) == (3, "a", PEER)
    dials.answer("a", OTHER, dialed=True)  # nobody had dialled it


def test_a_storm_of_dials_ends_the_run() -> None:
    dials = Dials()
    for number in range(STORM - 1):
        dials.dial("a", PEER, number / 1000)
    with pytest.raises(Storm, match="a dialled"):
        dials.dial("a", PEER, 60.0)


def test_dials_and_probes_count_until_they_are_answered() -> None:
    account = Account()
    for second in range(DIALS):
        account.handled("a", TimerFired(TICK), [Dial(PEER, ("x",), False)], second)
        account.handled("a", DialFailed(PEER, Reason.CONNECTION_REFUSED), [], second)
    assert over_budget("streams", account, NAMES) == []
    account.handled("a", TimerFired(TICK), [Probe(PEER, ("x",))], 59.0)
    assert over_budget("streams", account, NAMES) == [
        Complaint(Rule.BUDGET, "a dialled a 11 times in a minute")
    ]


def test_a_dial_that_waits_for_a_commit_counts_when_that_is_done_and_not_before() -> None:
    account = Account()
    dial = Dial(PEER, ("x",), False)
    for second in range(DIALS + 1):
        account.handled("a", TimerFired(TICK), [AfterCommit((dial,))], second)
    assert account.dials.worst(60.0)[0] == 0, "the disk was full"
    for second in range(DIALS + 1):
        account.committed("a", (dial, Send(PEER, Pong(1))), second)
    assert account.dials.worst(60.0) == (DIALS + 1, "a", PEER)


def test_the_open_world_counts_the_dials_of_commits_that_are_done_and_no_others() -> None:
    world = RoomsWay(1, ColumnTrace())
    to_bob = (world.peer("bob"), "ann")
    for is_full in (True, False):
        world.fill_disk("ann", is_full)
        world.ask("ann", Connect(world.contact("bob")))
        world.kill("bob")
        world.network.run(world.network.elapsed + 0.1)
        _, node, peer = world.account.dials.worst(60.0)
        assert (peer, node) == ((None, "") if is_full else to_bob)
        world.start("ann")


@pytest.mark.parametrize("answer", [LinkUp(PEER, HELLO, dialed=True, network=None), Probed(PEER, None)])
def test_the_last_dial_of_the_budget_may_succeed(answer: Input) -> None:
    account = Account()
    for second in range(DIALS + 1):
        account.handled("a", TimerFired(TICK), [Dial(PEER, ("x",), False)], second)
    account.handled("a", answer, [], 12.0)
    assert account.dials.worst(60.0)[0] == DIALS


def test_messages_and_steps_are_counted_by_situation_also_those_behind_a_commit() -> None:
    account = Account()
    account.handled("a", Asked(1, Start()), [AfterCommit((Send(PEER, Ping(1)), Send(PEER, Ping(2))))], 1.0)
    account.situation = Situation.QUIET
    account.handled("a", Received(PEER, Ping(1)), [Send(PEER, Pong(1)), SetTimer(1.0, TICK)], 2.0)
    spent = account.spent()
    assert spent["busy"] == Spent(2, 3)
    assert spent["quiet"] == Spent(1, 3)
    assert spent["alone"] == Spent(0, 0)


def test_the_worst_minute_is_one_of_the_clock_and_not_of_what_was_done() -> None:
    account = Account()
    for second in (0.0, 30.0, 59.9, 60.0, 61.0, 300.0):
        account.handled("a", Received(PEER, Ping(1)), [Send(PEER, Pong(1))], second)
    peak = account.most_messages(Situation.BUSY)
    assert (peak.count, peak.node, peak.mostly) == (4, "a", "4 of Pong")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("situation", Situation)
def test_the_last_message_and_step_that_are_allowed_and_the_first_that_are_not(
    way: str, situation: Situation
) -> None:
    most = allowed(way, situation, 1)
    account = Account()
    account.situation = situation
    account.handled("a", TimerFired(TICK), [Send(PEER, Pong(1))] * most.messages, 0.0)
    account.handled("b", TimerFired(TICK), [SetTimer(1.0, TICK)] * (most.steps - 1), 0.0)
    assert over_budget(way, account, NAMES) == []
    account.handled("a", TimerFired(TICK), [Send(PEER, Pong(1))], 59.0)
    account.handled("b", TimerFired(TICK), [], 59.0)
    messages, steps = over_budget(way, account, NAMES)
    assert messages.text.startswith(f"a sent {most.messages + 1} messages in a minute {situation}")
    assert steps.text.startswith(f"b took {most.steps + 1} steps in a minute {situation}")
    assert "of timer Due" in steps.text


def test_of_several_runs_the_most_of_each_is_told() -> None:
    one, other = {"busy": Spent(3, 10), "quiet": Spent(1, 1)}, {"busy": Spent(2, 20)}
    assert most_spent([one, other]) == {"busy": Spent(3, 20), "quiet": Spent(1, 1)}


def test_a_node_that_never_rests_ends_the_run() -> None:
    account = Account()
    for _ in range(STORM_STEPS // 2):
        account.handled("a", TimerFired(TICK), [SetTimer(0.0, TICK)], 1.0)
    with pytest.raises(Storm, match=r"a took \d+ steps in a second, after timer Due"):
        account.handled("a", TimerFired(TICK), [SetTimer(0.0, TICK)], 1.0)


# Planted faults: the shipped machines, one of them with something wrong.


class Chatty:
    """A machine that answers one peer what it should not: one word leads to another, for ever."""

    def __init__(self, inner: NodeMachine) -> None:
        self.inner = inner
        self.hello = inner.hello
        self.friend: PeerId | None = None

    def handle(self, event: Input, now: float) -> list[Effect]:
        effects = [*self.inner.handle(event, now)]
        if isinstance(event, LinkUp):
            self.friend = self.friend or event.peer
        match event:
            case Received(peer, Pong(1)) if peer == self.friend:
                effects.append(Send(peer, Ping(1)))
        return effects


class Restless:
    """A machine with a timer that is set again and again and leads to nothing."""

    def __init__(self, inner: NodeMachine, pause: float) -> None:
        self.inner = inner
        self.hello = inner.hello
        self.pause = pause

    def handle(self, event: Input, now: float) -> list[Effect]:
        if isinstance(event, TimerFired) and event.timer == TICK:
            return [SetTimer(self.pause, TICK)]
        effects = [*self.inner.handle(event, now)]
        return [*effects, SetTimer(self.pause, TICK)] if isinstance(event, Asked) else effects


def with_fault(way: type[OpenWorld], wrap: Callable[[NodeMachine], NodeMachine]) -> list[Complaint]:
    """What is said of a course in which one node has a fault, on which others do not rely."""
    cast = way(1, ColumnTrace()).cast
    name = next(name for name in cast.nodes if name not in cast.anchors)

    class Planted(way):  # type: ignore[misc, valid-type]
        def machine(self, each: str) -> NodeMachine:
            made = super().machine(each)
            assert isinstance(made, OpenMachine)
            if each == name:
                made.inner = wrap(made.inner)
            return made

    return Course(Planted(1, ColumnTrace()), (Fault.PAUSE,)).run(lambda done, what: None)


@pytest.mark.parametrize("way", WAYS)
def test_a_node_that_answers_every_word_with_a_word_is_found(way: str) -> None:
    complaints = with_fault(WAYS[way], Chatty)  # type: ignore[arg-type]
    texts = [each.text for each in complaints if each.rule is Rule.BUDGET]
    quiet = [text for text in texts if str(Situation.QUIET) in text]
    assert any("messages in a minute" in text and "of P" in text for text in quiet), complaints
    assert any("steps in a minute" in text and "of P" in text for text in quiet), complaints


@pytest.mark.parametrize("way", WAYS)
def test_a_node_with_a_busy_timer_is_found_in_every_situation(way: str) -> None:
    complaints = with_fault(WAYS[way], lambda inner: Restless(inner, 0.02))  # type: ignore[arg-type]
    texts = [each.text for each in complaints if each.rule is Rule.BUDGET]
    assert all(" took " in text and "of timer Due" in text for text in texts), complaints
    for situation in (Situation.QUIET, Situation.AWAY, Situation.ALONE):
        assert any(str(situation) in text for text in texts), (situation, complaints)


def test_a_node_whose_timer_is_due_at_once_for_ever_ends_the_run() -> None:
    with pytest.raises(Storm, match="took"):
        with_fault(StreamsWay, lambda inner: Restless(inner, 0.0))


class Forgetful(RoomsWay):
    """Nodes that forget at every start whom they dialled."""

    def start(self, name: str) -> None:
        for key, _ in [*self.stores[name].cells.scan("dialed")]:
            self.stores[name].cells.delete("dialed", key)
        super().start(name)


def test_a_node_that_forgets_at_its_start_whom_it_dialled_is_found() -> None:
    complaints = Course(Forgetful(1, ColumnTrace()), (Fault.PAUSE,)).run(lambda done, what: None)
    assert any(each.rule is Rule.BUDGET and " dialled " in each.text for each in complaints), complaints
