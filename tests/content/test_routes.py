"""What is known of routes."""

from __future__ import annotations

from random import Random

import pytest
from tests.content.chains import nearest_first
from tests.content.one_scout import FAR, FARTHER, NEAR, published, scout

from linnet.content.attribute_keys import nearest_name
from linnet.content.config import ContentConfig
from linnet.content.messages import Held, Notice, Reached, Settled, SoFar, Subscribe, Subscribed, Taken
from linnet.content.routes import PURPOSE, Reach, RouteBook, RouteLapse
from linnet.core.effects import AfterCommit, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.sim.clock import START
from linnet.sim.content.world import ContentWorld
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Record

FIRST, SECOND = (PeerId(bytes([number]) * 32) for number in range(1, 3))


def test_the_link_knows_best_where_a_route_is_and_the_last_word_counts_without_one() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out)
    book = RouteBook(ContentConfig(), reach, out)
    book.learn(FIRST, (Contact(SECOND),), Contact(FIRST, ("tls://old:1",)))
    assert book.contact(FIRST) == Contact(FIRST, ("tls://old:1",))
    reach.handle_link_up(FIRST, ("tls://new:1",))
    assert book.contact(FIRST) == Contact(FIRST, ("tls://new:1",))
    assert (book.backups(FIRST), book.backups(SECOND)) == ((Contact(SECOND),), ())


def test_a_route_that_stays_away_lapses_and_one_that_comes_back_does_not() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out)
    book = RouteBook(ContentConfig(avoided=60.0), reach, out)
    book.learn(FIRST, (Contact(SECOND),))
    book.handle_link_down(SECOND)
    assert out.take() == []
    book.handle_link_down(FIRST)
    assert out.take() == [SetTimer(60.0, RouteLapse(FIRST))]
    reach.handle_link_up(FIRST)
    assert not book.forget_lapsed(FIRST)
    assert book.backups(FIRST) == (Contact(SECOND),)
    assert book.forget_lapsed(SECOND)


def test_the_oldest_are_forgotten() -> None:
    out = Outbox()
    book = RouteBook(ContentConfig(routes=1), Reach(ContentConfig(), out), out)
    book.learn(FIRST, (Contact(SECOND),))
    book.learn(SECOND, (Contact(FIRST),))
    assert (book.backups(FIRST), book.backups(SECOND)) == ((), (Contact(FIRST),))


# Shortcuts past routes.


def tree(parents: dict[int, int], config: ContentConfig) -> tuple[ContentWorld, list[str], ColumnTrace]:
    """Nodes by their distance to "stock", each with the next hop that is given; the rendezvous is 0."""
    trace = ColumnTrace()
    world = ContentWorld(len(parents) + 1, 1, config, trace=trace)
    ordered = nearest_first(world)
    peers = [world.identities[name].peer for name in ordered]
    for place, peer in enumerate(peers):
        above = [peers[parents[place]]] if place else []
        world.tables.know(peer, [*above, *peers[place + 1 :]])
    world.run(0.5)
    return world, ordered, trace


def narrow(world: ContentWorld, ordered: list[str], *places: int) -> str:
    """A predicate with one attribute more, which goes to the rendezvous of "stock" from these nodes."""
    peers = [world.identities[ordered[place]].peer for place in places]
    names = (f"a{number}" for number in range(1000))
    near = (name for name in names if all(nearest_name(peer, (name, "stock")) == "stock" for peer in peers))
    return f"{next(near)}/stock"


def received(
    world: ContentWorld, ordered: list[str], trace: ColumnTrace, body: bytes, said: str = "stock"
) -> list[tuple[int, int]]:
    """Publish at the rendezvous: who is sent the event, and by whom."""
    before = len(list(trace.rows()))
    world.publish(ordered[0], said, body)
    world.run(30.0)
    places = {world.identities[name].peer: place for place, name in enumerate(ordered)}
    return sorted(
        (places[PeerId(row.node)], places[PeerId(row.peer or b"")])
        for row in list(trace.rows())[before:]
        if row.kind == Kind.RECEIVED and row.note == "notice"
    )


CHAIN = {1: 0, 2: 1, 3: 2}
REDIRECT = [ContentConfig(redirect=True), ContentConfig(redirect=True, reliable=False)]


@pytest.mark.parametrize("config", REDIRECT)
def test_nodes_with_one_route_are_passed_by_and_do_nothing(config: ContentConfig) -> None:
    world, ordered, trace = tree(CHAIN, config)
    world.subscribe(ordered[3], "stock")
    world.run(5.0)
    assert received(world, ordered, trace, b"x") == [(3, 0)]
    assert world.bodies(ordered[3]) == [b"x"]


@pytest.mark.parametrize("config", REDIRECT)
@pytest.mark.parametrize("is_covered", [False, True])
def test_a_second_subscriber_ends_all_shortcuts_past_its_way_also_when_it_is_covered(
    config: ContentConfig, is_covered: bool
) -> None:
    world, ordered, trace = tree({**CHAIN, 4: 3, 5: 3, 6: 2}, config)
    second = narrow(world, ordered, 5, 6) if is_covered else "stock"
    world.subscribe(ordered[4], "stock")
    world.run(5.0)
    assert received(world, ordered, trace, b"x") == [(4, 0)]
    world.subscribe(ordered[5], second)
    world.run(5.0)
    assert received(world, ordered, trace, b"y", second) == [(3, 0), (4, 3), (5, 3)]
    world.subscribe(ordered[6], second)
    world.run(5.0)
    assert received(world, ordered, trace, b"z", second) == [(2, 0), (3, 2), (4, 3), (5, 3), (6, 2)]
    assert [world.bodies(ordered[place]) for place in (4, 5, 6)] == [[b"x", b"y", b"z"], [b"y", b"z"], [b"z"]]


@pytest.mark.parametrize("config", REDIRECT)
def test_a_node_with_a_subscription_of_its_own_is_never_passed_by(config: ContentConfig) -> None:
    world, ordered, trace = tree(CHAIN, config)
    world.subscribe(ordered[3], "stock")
    world.run(5.0)
    world.subscribe(ordered[1], narrow(world, ordered, 1))
    world.run(5.0)
    assert received(world, ordered, trace, b"x", narrow(world, ordered, 1)) == [(1, 0), (3, 1)]
    assert (world.bodies(ordered[1]), world.bodies(ordered[3])) == ([b"x"], [b"x"])


def test_where_a_shortcut_is_dead_the_event_takes_the_route_and_then_others_stand_in() -> None:
    world, ordered, _ = tree({**CHAIN, 4: 3, 5: 3}, ContentConfig(redirect=True, lately=0.0))
    for place in (4, 5):
        world.subscribe(ordered[place], "stock")
    world.run(5.0)
    world.crash(ordered[3], silent=True)
    world.publish(ordered[0], "stock", b"x")
    world.run(60.0)
    assert (world.bodies(ordered[4]), world.bodies(ordered[5])) == ([b"x"], [b"x"])


@pytest.mark.parametrize("is_down", [False, True])
def test_where_nothing_comes_back_from_a_shortcut_the_event_goes_to_the_route_itself(is_down: bool) -> None:
    machine = scout(ContentConfig(redirect=True))
    past = Contact(FARTHER, ("tls://farther:1",))
    machine.hear(FAR, Subscribe(1, "stock", "stock", 0, False, (), past), START)
    unit, card = published()
    first = machine.hear(NEAR, Notice("stock", unit, card, 1, 60_000), START)
    assert [each.peer for each in first if isinstance(each, Send)] == [FARTHER]
    if is_down:
        then = machine.down(FARTHER)
    else:
        (timer,) = [each for each in first if isinstance(each, SetTimer)]
        then = machine.fire(timer.timer, START + timer.delay)
    notices = [each for each in then if isinstance(each, Send) and isinstance(each.message, Notice)]
    assert [each.peer for each in notices] == [FAR]


@pytest.mark.parametrize("seed", range(3))
def test_with_shortcuts_subscriptions_come_and_go_and_nobody_misses_anything(seed: int) -> None:
    luck = Random(seed)
    parents = {place: luck.randrange(max(0, place - 3), place) for place in range(1, 16)}
    world, ordered, _ = tree(parents, ContentConfig(redirect=True))
    asked: dict[int, int] = {}
    expected: dict[int, list[bytes]] = {}
    for step in range(25):
        place = luck.randrange(16)
        if place in asked:
            world.unsubscribe(ordered[place], asked.pop(place))
        else:
            asked[place] = world.subscribe(ordered[place], luck.choice(["stock", "apple/stock"]))
        world.run(3.0)
        body = str(step).encode()
        world.publish(ordered[luck.randrange(16)], "apple/stock", body)
        world.run(5.0)
        for each in asked:
            expected.setdefault(each, []).append(body)
    assert {place: world.bodies(ordered[place]) for place in expected} == expected


PEER = PeerId(b"p" * 32)
CONTACT = Contact(PEER, ("tls://p:1",))
ONE, TWO, THREE = (Subscribed(number, None) for number in (1, 2, 3))


def dropped(reason: Reason) -> Record:
    return Record(Kind.DROPPED, peer=PEER, reason=reason, note="Subscribed")


def test_what_is_said_waits_for_a_link_that_is_held() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(waiting=2), out)
    reach.send(CONTACT, ONE)
    assert out.take() == [Hold(PEER, CONTACT.hints, PURPOSE)]
    reach.send(CONTACT, TWO)
    assert out.take() == []
    reach.send(CONTACT, THREE)
    assert out.take() == [dropped(Reason.QUEUE_FULL)]
    reach.handle_link_up(PEER)
    assert out.take() == [Send(PEER, ONE), Send(PEER, TWO)]
    reach.send(CONTACT, THREE)
    assert out.take() == [Send(PEER, THREE)]
    reach.answer(PEER, ONE)
    assert out.take() == [Send(PEER, ONE)]


def test_where_there_is_no_link_nothing_is_lost_without_a_word() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out)
    reach.answer(PEER, ONE)
    assert out.take() == [dropped(Reason.UNREACHABLE)]
    reach.send(CONTACT, ONE)
    out.clear()
    reach.handle_link_down(PEER, Reason.DIAL_TIMEOUT)
    assert out.take() == [Release(PEER, PURPOSE), dropped(Reason.DIAL_TIMEOUT)]
    reach.handle_link_down(PEER, Reason.DIAL_TIMEOUT)
    assert out.take() == []


def test_that_an_event_arrived_is_said_as_promises_are() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out, lambda: out.committed)
    reach.handle_link_up(PEER)
    way = (EventId(bytes(32)), "stock")
    so_far = SoFar(1, 0, 0, 1, ())
    plain = (Taken(*way, None), Held(*way), ONE)
    arrivals = (Reached(*way, 1, 0), Settled(*way, 1, 0), Taken(*way, None, 1, so_far), Held(*way, so_far))
    for message in (*plain, *arrivals):
        reach.answer(PEER, message)
    assert out.take() == [
        *(Send(PEER, message) for message in plain),
        *(AfterCommit((Send(PEER, message),)) for message in arrivals),
    ]


def test_links_that_are_not_needed_are_let_go() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out)
    reach.send(CONTACT, ONE)
    out.clear()
    reach.release_idle({})
    assert out.take() == []
    reach.handle_link_up(PEER)
    out.clear()
    reach.release_idle({PEER: None})
    assert out.take() == []
    reach.release_idle({})
    assert out.take() == [Release(PEER, PURPOSE)]
