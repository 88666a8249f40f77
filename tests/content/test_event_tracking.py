"""Ledgers are held by others as well, and forgotten when they are finished."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.content.chains import chain
from tests.content.directories import Listed
from tests.content.one_event import event
from tests.content.one_scout import FAR, FARTHER, KEY, NEAR, OWN, LoneScout, published, scout

from linnet.content.branch_ledger import Count, Trackers
from linnet.content.config import ContentConfig
from linnet.content.filter_backup import Backups
from linnet.content.filter_table import FilterTable
from linnet.content.messages import LOGGED, Answered, Log, Logged, Notice, Publish, Subscribe, Taken, Tracked
from linnet.content.rendezvous import Elections
from linnet.content.routes import Reach, RouteBook, Station
from linnet.core.effects import Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.event.signing import verify_unit
from linnet.machine.outbox import Effect, Outbox
from linnet.sim.clock import START
from linnet.sim.content.world import ContentWorld
from linnet.trace.records import Kind, Record

OURS, ROUTE, FIRST, SECOND = (PeerId(bytes([number]) * 32) for number in range(1, 5))


class LoneTrackers(Trackers):
    """Trackers with an outbox of their own."""

    def __init__(self, **more: object) -> None:
        self.out = out = Outbox()
        config = ContentConfig(**more)  # type: ignore[arg-type] # its fields
        reach, table = Reach(config, out), FilterTable()
        for peer in (FIRST, SECOND):
            reach.handle_link_up(peer)
        elections = Elections(OURS, config, Listed(FIRST, SECOND), out)
        book = RouteBook(config, reach, out)
        backups = Backups(Station(OURS, config, reach, table, book, out), Listed(FIRST, SECOND), elections)
        super().__init__(config, reach, backups, out)

    def after(self, act: Callable[..., object], *inputs: object) -> list[Effect]:
        """What comes of an input."""
        act(*inputs)
        return self.out.take()


def trackers(**more: object) -> LoneTrackers:
    return LoneTrackers(**more)


PASSING = event()
WAY = (PASSING.id, "stock")
ANSWER = Answered(*WAY, ROUTE, 4, 1)
END = Tracked(*WAY)


def sends(effects: list[object]) -> list[tuple[PeerId, object]]:
    return [(each.peer, each.message) for each in effects if isinstance(each, Send)]


def test_trackers_know_of_an_event_of_who_answered_and_of_its_end() -> None:
    leading = trackers(backups=2)
    log = Log("stock", PASSING.unit, PASSING.card, 3)
    assert sends([*leading.after(leading.lead, WAY, PASSING, 3, START)]) == [(FIRST, log), (SECOND, log)]
    assert leading.after(leading.lead, WAY, PASSING, 3, START) == [], "once"
    (soon,) = leading.after(leading.note_answer, WAY, ROUTE, Count(4, 1))
    assert isinstance(soon, SetTimer)
    told = Logged((ANSWER,), ())
    assert sends([*leading.after(leading.tell_trackers)]) == [(FIRST, told), (SECOND, told)]
    assert [type(each) for each in leading.after(leading.note_end, WAY)] == [SetTimer]
    end = Logged((), (END,))
    assert sends([*leading.after(leading.tell_trackers)]) == [(FIRST, end), (SECOND, end)]
    assert (leading.after(leading.note_end, WAY), leading.after(leading.tell_trackers), len(leading)) == (
        [],
        [],
        0,
    )


def test_what_is_to_be_told_of_many_events_goes_together_and_ends_alone_for_what_is_finished() -> None:
    leading = trackers(backups=1)
    ways = [(PASSING.id, f"stock{number}") for number in range(LOGGED + 1)]
    timers: list[Effect] = []
    for way in ways:
        leading.after(leading.lead, way, PASSING, 3, START)
        timers += leading.after(leading.note_answer, way, ROUTE, Count(1, 0))
        timers += leading.after(leading.note_end, way)
    leading.after(leading.lead, WAY, PASSING, 3, START)
    timers += leading.after(leading.note_answer, WAY, ROUTE, Count(4, 1))
    assert len(timers) == 1
    (_, first), (_, second) = sends([*leading.after(leading.tell_trackers)])
    assert isinstance(first, Logged)
    assert (first.answers, len(first.finished)) == ((ANSWER,), LOGGED)
    assert second == Logged((), (Tracked(*ways[-1]),))


def test_what_is_unfinished_when_the_rendezvous_is_gone_goes_on_without_those_who_answered() -> None:
    tracking = trackers()
    tracking.add_log(FIRST, WAY, PASSING, 3, START)
    tracking.handle_logged(FIRST, Logged((ANSWER,), ()))
    assert tracking.unfinished_of(SECOND) == []
    assert tracking.unfinished_of(FIRST) == [("stock", PASSING, 3)]
    assert tracking.answers_of(WAY) == {ROUTE: Count(4, 1)}
    tracking.handle_logged(FIRST, Logged((), (END,)))
    assert (tracking.unfinished_of(FIRST), tracking.answers_of(WAY), len(tracking)) == ([], {}, 0)


def test_the_next_rendezvous_sends_an_event_to_those_alone_who_have_not_answered() -> None:
    machine = scout()
    for peer in (FAR, FARTHER):
        machine.hear(peer, Subscribe(1, "stock", "stock", 0), START)
    unit, card = published()
    machine.hear(NEAR, Log("stock", unit, card, 1), START)
    told = Answered(verify_unit(unit, card).head, "stock", FAR, 1, 0)
    machine.hear(NEAR, Logged((told,), ()), START)
    machine.down(NEAR)
    effects = machine.find(KEY)
    sent = [(peer, type(message)) for peer, message in sends([*effects])]
    assert [peer for peer, kind in sent if kind is Notice] == [FARTHER]


def test_the_rendezvous_tells_trackers_of_an_event_before_it_says_that_it_has_it() -> None:
    machine = LoneScout(0, Listed(OWN, FAR), ContentConfig(backups=2, confirm=False))
    for peer in (OWN, FAR, FARTHER):
        machine.up(peer)
    unit, card = published()
    effects = machine.hear(FARTHER, Publish("stock", unit, card, 0), START)
    log = Log("stock", unit, card, 0)
    told = [each for each in sends([*effects]) if isinstance(each[1], Log | Taken)]
    assert told == [
        (OWN, log),
        (FAR, log),
        (FARTHER, Taken(verify_unit(unit, card).head, "stock", None)),
    ]


def test_only_the_rendezvous_that_told_of_an_event_tells_more_of_it() -> None:
    tracking = trackers()
    tracking.add_log(FIRST, WAY, PASSING, 3, START)
    for peer, way in ((SECOND, WAY), (FIRST, (PASSING.id, "other"))):
        for told in (Logged((), (Tracked(*way),)), Logged((Answered(*way, ROUTE, 1, 0),), ())):
            (record,) = tracking.after(tracking.handle_logged, peer, told)
            assert isinstance(record, Record)
            assert (record.kind, record.reason) == (Kind.REJECTED, Reason.STALE)
    assert len(tracking) == 1


def test_logs_are_bounded_in_number_and_time() -> None:
    tracking = trackers(tracked=1, refresh=10.0)
    tracking.add_log(FIRST, WAY, PASSING, 3, START)
    (evicted,) = tracking.after(tracking.add_log, FIRST, (PASSING.id, "other"), PASSING, 3, START)
    assert isinstance(evicted, Record)
    assert (evicted.kind, len(tracking)) == (Kind.EVICTED, 1)
    tracking.tidy(START + tracking._config.taken_for)
    assert len(tracking) == 0


def test_without_backups_and_without_acknowledgements_nobody_tracks() -> None:
    for leading in (trackers(backups=0), trackers(reliable=False)):
        assert leading.after(leading.lead, WAY, PASSING, 0, START) == []


def test_an_event_outlives_its_publisher_and_its_rendezvous() -> None:
    """The way down is broken at a node that crashed; before that is mended, both of these crash."""
    world, ordered = chain(9, ContentConfig(backups=3, lately=0.0), most_farther=None)
    world.subscribe(ordered[4], "stock")
    world.run(10.0)
    world.crash(ordered[2], silent=True)
    world.publish(ordered[1], "stock", b"x")
    world.run(1.0)
    assert not world.bodies(ordered[4])
    world.crash(ordered[0])
    world.crash(ordered[1])
    world.run(120.0)
    assert world.bodies(ordered[4]) == [b"x"]


def test_what_is_kept_of_events_stays_the_same_however_long_it_runs() -> None:
    world = ContentWorld(12, 2, ContentConfig(refresh=30.0))
    world.run(0.5)
    for name in world.names[:8]:
        world.subscribe(name, "stock/price[0,10]")
    world.run(5.0)
    kept: list[int] = []
    for number in range(120 if os.environ.get("LINNET_SOAK") else 12):
        for name in world.names[8:]:
            for price in range(5):
                world.publish(name, f"stock/price={price}", f"{number} {price}".encode())
            world.run(6.0)
        world.run(6.0)
        kept.append(sum(scout.remembered for scout in world.scouts.values()))
    assert len(world.matches["node0"]) == 20 * len(kept)
    assert max(kept[len(kept) // 2 :]) <= 1.2 * max(kept[3 : len(kept) // 2]), kept
    assert kept[-1] < 2000
