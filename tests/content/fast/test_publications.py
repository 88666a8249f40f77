"""What became of an event: receipts, deputies that are gone or lie, and members that are not there."""

from __future__ import annotations

import pytest
from tests.content.audience import Audience
from tests.content.fast_node import LonePublisher, complaints, receipt_key, replies, sent

from linnet.content.config import FastConfig
from linnet.content.fast.commands import GroupOutcome, PublishToGroup, Relieved
from linnet.content.fast.fast_delivery import IdleDue
from linnet.content.fast.group_requests import AnswerDue
from linnet.content.fast.messages import Convey, Conveyed, Quit
from linnet.content.fast.signed_records import receipt
from linnet.core.effects import Release, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.event.signing import unit_head
from linnet.testing.identities import known_identity
from linnet.testing.lone_part import Said
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

NAMES = ("a", "b", "c", "d", "e", "f")
"""The first serves the last three; b and c are served by the publisher."""
SERVED = ("d", "e", "f")


def peer(name: str) -> PeerId:
    return known_identity(name).peer


def published(config: FastConfig | None = None) -> tuple[LonePublisher, Said]:
    node = LonePublisher(config=config)
    node.fill(*NAMES)
    return node, node.ask(PublishToGroup("stock", "stock", b"one", confirm=600.0))


def conveyed(effects: Said) -> dict[str, Convey]:
    return {name: message for name in NAMES for message in sent(effects, name, Convey)}


def outcome(effects: Said) -> GroupOutcome:
    (found,) = replies(effects)
    assert isinstance(found, GroupOutcome)
    return found


def test_an_event_goes_to_the_deputy_and_to_those_whom_nobody_else_serves() -> None:
    node, effects = published()
    first = conveyed(effects)
    assert {name: message.serve for name, message in first.items()} == {"a": True, "b": False, "c": False}
    assert replies(node.receive(first["b"], "b")) == []
    assert replies(node.receive(first["c"], "c")) == []
    said = outcome(node.receive(first["a"], "a", *SERVED))
    assert (said.wanted, said.reached, said.missed, said.taken_back, said.relieved) == (6, 6, (), 0, ())


def test_nobody_matches_and_that_is_known_at_once() -> None:
    node = LonePublisher()
    node.enrol("a", predicate="apple/stock")
    said = outcome(node.ask(PublishToGroup("stock", "stock", b"")))
    assert (said.wanted, said.reached) == (0, 0)


def test_a_deputy_with_nothing_to_do_is_not_bothered() -> None:
    node = LonePublisher()
    node.fill(*NAMES)
    for name in NAMES[1:]:
        node.enrol(name, predicate="apple/stock")
    node.enrol("a", 10, predicate="pear/stock")
    assert conveyed(node.ask(PublishToGroup("stock", "stock", b""))) == {}


def test_whom_a_dead_deputy_served_is_sent_the_event_within_the_same_publication() -> None:
    node, effects = published()
    first = conveyed(effects)
    broken = node.down("a")
    taken_back = conveyed(broken)
    assert set(taken_back) == set(SERVED)
    for name, message in [*first.items(), *taken_back.items()]:
        if name != "a":
            assert replies(node.receive(message, name)) == [], "the deputy itself may yet come back"
    said: Said = []
    for timer in _timers(broken) * node.config.tries:
        said += node.fire(timer)
    found = outcome(said)
    assert (found.reached, found.missed, found.taken_back) == (5, (peer("a"),), 3)
    assert found.relieved == (Relieved(peer("a"), Reason.CRASHED),)


def _timers(effects: Said) -> list[Timer]:
    return [
        each.timer for each in effects if isinstance(each, SetTimer) and isinstance(each.timer, AnswerDue)
    ]


def test_a_deputy_that_still_gathers_receipts_is_given_time() -> None:
    node, effects = published()
    first = conveyed(effects)["a"]
    event = unit_head(first.unit)
    waiting = Conveyed(first.number, event, receipt(receipt_key("a"), event), True, True, (), None)
    assert node.hear("a", waiting) == [SetTimer(2 * node.config.patience, AnswerDue(first.number))]


def test_links_to_those_to_whom_nothing_goes_are_let_go() -> None:
    node, effects = published()
    first = conveyed(effects)
    for name in ("b", "c"):
        node.receive(first[name], name)
    node.receive(first["a"], "a", *SERVED)
    assert released(node) == [*SERVED]
    node.hear("b", Quit(9, node.group))
    assert released(node) == ["b"]


def released(node: LonePublisher) -> list[str]:
    """Members whose links are let go when it is time to look at them."""
    gone = [each.peer for each in node.fire(IdleDue()) if isinstance(each, Release)]
    return [name for name in NAMES if peer(name) in gone]


def test_receipts_that_nobody_gave_are_seen_and_the_deputy_is_named() -> None:
    node, effects = published()
    first = conveyed(effects)
    event = unit_head(first["a"].unit)
    forged = tuple((peer(name), bytes(16)) for name in SERVED)
    own = receipt(b"a".ljust(32, b"."), event)
    lie = node.hear("a", Conveyed(first["a"].number, event, own, True, False, forged, None))
    assert (peer("a"), Reason.FORGING) in complaints(lie)
    again = conveyed(lie)
    assert set(again) == set(SERVED), "they are sent it at once"
    for name in ("b", "c"):
        node.receive(first[name], name)
    for name in SERVED:
        last = node.receive(again[name], name)
    found = outcome(last)
    assert (found.reached, found.missed, found.taken_back) == (6, (), 3)
    assert found.relieved == (Relieved(peer("a"), Reason.FORGING),)
    assert node.machine.publisher.status()[0].deputies == (), "and nobody else could"


def test_a_receipt_of_one_member_is_none_of_another() -> None:
    node, effects = published()
    first = conveyed(effects)
    event = unit_head(first["a"].unit)
    swapped = tuple((peer(name), receipt(b"a".ljust(32, b"."), event)) for name in SERVED)
    lie = node.hear("a", Conveyed(first["a"].number, event, swapped[0][1], True, False, swapped, None))
    assert set(conveyed(lie)) == set(SERVED)
    assert (peer("a"), Reason.FORGING) in complaints(lie)


def test_a_deputy_that_keeps_events_back_is_relieved_when_two_members_did_not_get_them() -> None:
    node, effects = published()
    first = conveyed(effects)
    again = conveyed(node.receive(first["a"], "a", "d"))
    assert set(again) == {"e", "f"}
    one = node.receive(again["e"], "e")
    assert complaints(one) == [(peer("a"), Reason.LOST)], "named, but a link may have been broken"
    another = node.receive(again["f"], "f")
    assert complaints(another) == [(peer("a"), Reason.LOST)]
    node.receive(first["b"], "b")
    found = outcome(node.receive(first["c"], "c"))
    assert found.relieved == (Relieved(peer("a"), Reason.LOST),)
    assert (found.reached, found.missed) == (6, ())


def test_a_member_that_had_it_already_speaks_for_the_deputy() -> None:
    node, effects = published()
    again = conveyed(node.receive(conveyed(effects)["a"], "a"))
    for name in SERVED:
        assert complaints(node.receive(again[name], name, fresh=False)) == []
    assert len(node.machine.publisher.status()[0].deputies) == 1


def test_one_who_is_no_member_any_more_is_forgotten_and_whom_it_served_is_not() -> None:
    node, effects = published()
    first = conveyed(effects)
    again = conveyed(node.receive(first["a"], "a", reason=Reason.NOT_A_MEMBER))
    assert set(again) == set(SERVED)
    for name, message in [("b", first["b"]), ("c", first["c"]), *again.items()]:
        last = node.receive(message, name)
    assert (outcome(last).reached, outcome(last).missed) == (5, (peer("a"),))
    assert node.machine.publisher.status()[0].members == 5


def test_a_wrong_receipt_of_its_own_counts_as_missed() -> None:
    node = LonePublisher()
    node.enrol("a")
    (convey,) = sent(node.ask(PublishToGroup("stock", "stock", b"")), "a", Convey)
    event = unit_head(convey.unit)
    said = node.hear("a", Conveyed(convey.number, event, bytes(16), True, False, (), None))
    assert complaints(said) == [(peer("a"), Reason.FORGING)]
    assert outcome(said).missed == (peer("a"),)


def test_after_three_events_without_a_word_a_membership_ends() -> None:
    node = LonePublisher(config=FastConfig(tries=1))
    node.enrol("a")
    members = []
    for _ in range(3):
        effects = node.ask(PublishToGroup("stock", "stock", b""))
        (timer,) = _timers(effects)
        said = node.fire(timer)
        assert outcome(said).missed == (peer("a"),)
        members.append(node.machine.publisher.status()[0].members)
    assert members == [1, 1, 0]
    assert (peer("a"), Reason.TIMEOUT) in complaints(said)


@pytest.mark.parametrize("config", [FastConfig(publications=1), FastConfig(calls=1)], ids=["events", "calls"])
def test_events_under_way_and_open_questions_are_bounded(config: FastConfig) -> None:
    node = LonePublisher(config=config)
    node.enrol("a")
    node.ask(PublishToGroup("stock", "stock", b""))
    (declined,) = replies(node.ask(PublishToGroup("stock", "stock", b"")))
    assert getattr(declined, "reason", None) is Reason.CONGESTED


# In a network.


def audience(**more: object) -> Audience:
    """Twelve members, of which the second and third could serve ten each."""
    world = Audience(14, **more)  # type: ignore[arg-type] # links, a trace or a configuration
    for number, name in enumerate(world.names[1:13]):
        world.join(name, capacity=10 if number in (1, 2) else 0)
    return world


@pytest.mark.parametrize("silent", [False, True])
def test_a_deputy_that_crashes_in_the_midst_of_it_costs_nobody_the_event(silent: bool) -> None:
    world = audience()
    (deputy,) = world.deputies()
    before = world.say(b"before")
    assert (before.wanted, before.reached, before.taken_back) == (12, 12, 0)
    assert max(max(world.hops(name)) for name in world.names[1:13]) == 2
    at = world.network.elapsed
    after = PublishToGroup("stock", "stock", b"after", confirm=150.0)
    request = world.network.ask(world.peers[world.publisher], after)
    # The event is on its way to the deputy, which has not got it yet.
    world.network.at(at + 0.005, lambda: world.network.crash(world.peers[deputy], silent=silent))
    world.run(150.0)
    found = world.network.answers[request]
    assert isinstance(found, GroupOutcome)
    assert found.missed == (world.peers[deputy],)
    assert [each.peer for each in found.relieved] == [world.peers[deputy]]
    others = [name for name in world.names[1:13] if name != deputy]
    assert [world.bodies(name) for name in others] == [[b"before", b"after"]] * len(others)
    assert len(world.deputies()) == 1, "the other one serves them now"
    assert deputy not in world.deputies()
    assert world.say(b"later", seconds=80.0).reached == 11


def test_one_who_leaves_while_an_event_is_on_its_way_is_not_missed() -> None:
    node = LonePublisher()
    node.enrol("a")
    node.enrol("b")
    effects = node.ask(PublishToGroup("stock", "stock", b""))
    (to_a,), (to_b,) = sent(effects, "a", Convey), sent(effects, "b", Convey)
    node.hear("a", Quit(1, node.group))
    assert replies(node.receive(to_a, "a", reason=Reason.NOT_A_MEMBER)) == []
    found = outcome(node.receive(to_b, "b"))
    assert (found.wanted, found.reached, found.missed) == (1, 1, ())


@pytest.mark.parametrize(("silent", "limit"), [(False, 0.5), (True, 7.0)])
def test_one_dead_member_does_not_hold_up_the_publisher(silent: bool, limit: float) -> None:
    trace = ColumnTrace()
    world = Audience(4, trace=trace)
    for name in world.names[1:]:
        world.join(name)
    dead = world.names[3]
    world.network.crash(world.peers[dead], silent=silent)
    at = world.network.elapsed
    request = world.network.ask(world.peers[world.publisher], PublishToGroup("stock", "stock", b"x"))
    while request not in world.network.answers and world.network.elapsed < at + 60.0:
        world.run(0.05)
    assert world.network.elapsed - at <= limit
    found = world.network.answers[request]
    assert isinstance(found, GroupOutcome)
    assert (found.wanted, found.reached, found.missed) == (3, 2, ())
    assert found.silent == (world.peers[dead],)
    world.run(120.0)
    late = [row for row in trace.rows() if row.note is not None and "publisher was answered" in row.note]
    assert [(row.kind, row.reason) for row in late] == [(Kind.DROPPED, Reason.TIMEOUT)]


def test_with_confirm_a_silent_member_is_waited_for_so_long() -> None:
    world = Audience(4)
    for name in world.names[1:]:
        world.join(name)
    world.network.crash(world.peers[world.names[3]])
    request = world.network.ask(
        world.peers[world.publisher], PublishToGroup("stock", "stock", b"x", confirm=5.0)
    )
    world.run(4.9)
    assert request not in world.network.answers
    world.run(0.2)
    found = world.network.answers[request]
    assert isinstance(found, GroupOutcome)
    assert (found.reached, found.silent) == (2, (world.peers[world.names[3]],))
