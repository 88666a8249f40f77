"""Members are told how far we are, once in a while and soon after something happened."""

from __future__ import annotations

from tests.rooms.bench import Bench

from linnet.core.effects import CancelTimer, SetTimer
from linnet.rooms.announcing import AnnounceDue
from linnet.rooms.messages import Greet


def test_a_shorter_delay_replaces_a_longer_one_and_not_the_other_way_round() -> None:
    bench = Bench()
    bench.join("bob")
    announcing, tick = bench.room.announcing, AnnounceDue(bench.id)
    assert bench.brought_about(lambda: announcing.stop()) == [CancelTimer(tick)]
    assert bench.brought_about(lambda: announcing.arm(10.0)) == [SetTimer(10.0, tick)]
    assert bench.brought_about(lambda: announcing.arm(2.0)) == [SetTimer(2.0, tick)]
    assert bench.brought_about(lambda: announcing.arm(2.0)) == []
    assert bench.brought_about(lambda: announcing.arm(10.0)) == []
    bench.brought_about(announcing.stop)
    assert bench.brought_about(lambda: announcing.arm(10.0)) == [SetTimer(10.0, tick)]


def test_those_who_may_not_know_are_told_and_the_timer_is_set_again() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    tick = AnnounceDue(bench.id)
    effects = bench.fire(tick)
    told = [name for name in ("bob", "cid") if bench.sent(name, Greet, effects)]
    behind = [
        name
        for name in ("bob", "cid")
        if bench.room.guests.by_peer[bench.who(name).peer].heads != bench.room.sync.heads
    ]
    assert told == behind == ["bob", "cid"]
    period = bench.room.config.announce_period
    assert effects.count(SetTimer(period, tick)) == 1
