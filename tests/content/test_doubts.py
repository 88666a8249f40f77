"""A rendezvous whose others are gone looks again, until it finds them or some time is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.content.chains import fates, nearest_first
from tests.content.directories import Known
from tests.content.test_rendezvous import FAR, KEY, NEAR, OURSELVES

from linnet.content.attribute_keys import Locate, Located
from linnet.content.commands import AttributeFate
from linnet.content.config import ContentConfig
from linnet.content.filter_table import FilterTable
from linnet.content.predicate import read_predicate
from linnet.content.rendezvous import Doubts, Elections, LookDue
from linnet.core.effects import SetTimer
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.sim.content.world import ContentWorld
from linnet.testing.lone_part import Said

DUE = LookDue("stock")
CONFIG = ContentConfig(resend=2.0, lately=10.0, refresh=60.0)


class Doubtful(Doubts):
    """Doubts of a node that knows one that is farther; what is asked for is returned."""

    def __init__(self, config: ContentConfig, table: FilterTable) -> None:
        self.out = Outbox()
        self.elections = Elections(OURSELVES, config, Known(FAR), self.out)
        super().__init__(config, self.elections, table, self.out)

    def after(self, act: Callable[..., None], *inputs: object) -> Said:
        """What comes of an input."""
        act(*inputs)
        return self.out.take_said()


def rendezvous(config: ContentConfig = CONFIG) -> tuple[Elections, Doubtful]:
    table = FilterTable()
    table.add(OURSELVES, "stock", read_predicate("stock"))
    doubts = Doubtful(config, table)
    doubts.elections.decide("stock", 0.0)
    doubts.elections.handle_nodes_found(Located(KEY, (Contact(FAR),)), 0.0)
    doubts.out.take_said()
    return doubts.elections, doubts


def test_it_looks_soon_and_then_as_often_as_events_are_kept_and_no_more_after_a_period() -> None:
    elections, doubts = rendezvous()
    effects = doubts.after(doubts.begin, "stock", 0.0)
    assert doubts.after(doubts.begin, "stock", 0.0) == [], "one timer is enough"
    now, waits = 0.0, []
    while effects:
        (timer,) = [each for each in effects if isinstance(each, SetTimer)]
        assert timer.timer == DUE
        waits.append(timer.delay)
        now += timer.delay
        effects = doubts.after(doubts.look_again, DUE, now)
        if effects:
            assert effects[0] == Locate(KEY)
            elections.handle_nodes_found(Located(KEY, (Contact(FAR),)), now)
    assert waits == [2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    assert doubts.after(doubts.begin, "stock", now) == [SetTimer(2.0, DUE)], "and may begin anew"


def test_it_looks_no_more_when_another_is_the_rendezvous() -> None:
    elections, doubts = rendezvous()
    doubts.after(doubts.begin, "stock", 0.0)
    assert doubts.after(doubts.look_again, DUE, 2.0)[0] == Locate(KEY)
    elections.handle_nodes_found(Located(KEY, (Contact(NEAR),)), 2.0)
    assert (elections.held, elections.left) == ([], ["stock"])
    assert doubts.after(doubts.look_again, DUE, 6.0) == []


def test_without_events_that_are_kept_it_looks_as_long_as_a_lookup_counts() -> None:
    _, doubts = rendezvous(ContentConfig(resend=2.0, lately=0.0, confirmed=3.0))
    doubts.after(doubts.begin, "stock", 0.0)
    assert doubts.after(doubts.look_again, DUE, 2.0) == [Locate(KEY), SetTimer(3.0, DUE)]


def test_where_nothing_is_asked_for_it_looks_only_while_it_reaches_nobody() -> None:
    doubts = Doubtful(CONFIG, FilterTable())
    elections = doubts.elections
    elections.suspects.handle_link_down(FAR, Reason.CRASHED, 0.0)
    elections.decide("stock", 0.0)
    elections.handle_nodes_found(Located(KEY, ()), 0.0)
    doubts.begin("stock", 0.0)
    doubts.out.take_said()
    assert doubts.after(doubts.look_again, DUE, 2.0) == [Locate(KEY), SetTimer(4.0, DUE)]
    elections.handle_nodes_found(Located(KEY, (Contact(FAR),)), 2.0)
    assert elections.held == ["stock"]
    assert doubts.after(doubts.look_again, DUE, 6.0) == []


def small_world(nodes: int) -> tuple[ContentWorld, list[str]]:
    """Nodes in the order of their distance to the rendezvous of "stock"."""
    world = ContentWorld(nodes, 1)
    world.run(0.5)
    return world, nearest_first(world)


def test_where_who_keeps_its_filters_is_gone_it_looks_for_a_shorter_time() -> None:
    config = ContentConfig(resend=2.0, lately=10.0, refresh=60.0, avoided=5.0)
    elections, doubts = rendezvous(config)
    assert doubts.after(doubts.handle_keeper_loss, "stock", 0.0) == [SetTimer(2.0, DUE)]
    assert doubts.after(doubts.look_again, DUE, 9.0) == [Locate(KEY), SetTimer(4.0, DUE)]
    elections.handle_nodes_found(Located(KEY, (Contact(FAR),)), 9.0)
    assert doubts.after(doubts.look_again, DUE, 10.0) == []
    doubts.after(doubts.begin, "stock", 0.0)
    assert doubts.after(doubts.handle_keeper_loss, "stock", 1.0) == []
    assert doubts.after(doubts.look_again, DUE, 59.0) == [Locate(KEY), SetTimer(4.0, DUE)], (
        "the longer time counts"
    )


@pytest.mark.parametrize("place", [0, 5])
def test_who_was_there_while_all_others_restarted_is_served_again(place: int) -> None:
    """Nobody of them knows of it or of what it asked for: it has to find them by itself, or they it."""
    world, ordered = small_world(6)
    last = ordered[place]
    others = [name for name in ordered if name != last]
    world.subscribe(last, "stock")
    world.run(3.0)
    for name in others:
        world.crash(name)
    world.run(2.0)
    for name in others:
        peers = [world.identities[each].peer for each in others if each != name]
        world.tables.know(world.identities[name].peer, peers)
        world.come_back(name)
    world.run(30.0)
    request = world.publish(others[1], "stock", b"x")
    world.run(10.0)
    assert fates(world, request) == (AttributeFate("stock", 1, 0, None, matches=1),)
    assert world.bodies(last) == [b"x"]


def test_what_is_said_where_nobody_can_be_reached_is_not_told_as_if_nobody_wanted_it() -> None:
    world, (near, far) = small_world(2)
    world.subscribe(near, "stock")
    world.subscribe(far, "stock")
    world.run(3.0)
    world.crash(near)
    world.run(1.0)
    request = world.publish(far, "stock", b"x")
    world.run(10.0)
    assert fates(world, request) == (AttributeFate("stock", 1, 1, None, matches=1),), (
        "here, and who else is not known"
    )


def test_who_never_knew_anybody_knows_that_nobody_else_wants_it() -> None:
    world, (alone,) = small_world(1)
    request = world.publish(alone, "stock", b"x")
    world.run(10.0)
    assert fates(world, request) == (AttributeFate("stock", 0, 0, None),)


def test_a_subscription_stands_with_nobody_while_nobody_can_be_reached() -> None:
    world, (near, far) = small_world(2)
    world.subscribe(far, "stock")
    world.run(3.0)
    assert world.is_settled(far)
    world.crash(near)
    world.run(1.0)
    assert not world.is_settled(far)
    world.come_back(near)
    world.run(30.0)
    assert world.is_settled(far)
