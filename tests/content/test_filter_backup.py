"""Filters are kept by others, and what hangs on a node that crashes is served all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.content.chains import chain, fates
from tests.content.directories import Known, Listed
from tests.content.one_scout import FAR, FARTHER, NEAR, LoneScout

from linnet.content.attribute_keys import attribute_key, distance, position
from linnet.content.commands import AttributeFate
from linnet.content.config import ContentConfig
from linnet.content.filter_backup import BackupDue, Backups
from linnet.content.filter_table import FilterTable
from linnet.content.messages import Backup, Keepers, Kept, Replace, Subscribe
from linnet.content.predicate import read_predicate
from linnet.content.rendezvous import Elections
from linnet.content.routes import Reach, RouteBook, RouteLapse, Station
from linnet.core.effects import Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect, Outbox
from linnet.sim.clock import START
from linnet.sim.content.world import ContentWorld
from linnet.testing.lone_part import Said
from linnet.trace.records import Record

OURS, ROUTE, OTHER, *KNOWN = (PeerId(bytes([number]) * 32) for number in range(1, 9))
CLOSER = KNOWN[0]


class Parts:
    """Backups of a node that knows five others, of which some is closer to the attribute."""

    def __init__(self, **more: object) -> None:
        config = ContentConfig(confirm=False, **more)  # type: ignore[arg-type] # its fields
        self.out = out = Outbox()
        self.reach, self.table = Reach(config, out), FilterTable()
        for peer in (ROUTE, OTHER, *KNOWN):
            self.reach.handle_link_up(peer)
        self.elections = Elections(OURS, config, Listed(*KNOWN), out)
        self.book = RouteBook(config, self.reach, out)
        self.backups = Backups(
            Station(OURS, config, self.reach, self.table, self.book, out), Listed(*KNOWN), self.elections
        )

    def add(self, route: PeerId, text: str) -> list[tuple[PeerId, Backup]]:
        predicate = read_predicate(text)
        self.table.add(route, "stock", predicate)
        return told(self.after(self.backups.tell_change, "stock", route, (predicate,), False, 0.0))

    def after(self, act: Callable[..., None], *inputs: object) -> list[Effect]:
        """What comes of an input."""
        act(*inputs)
        return self.out.take()


def told(effects: Sequence[object]) -> list[tuple[PeerId, Backup]]:
    sent = [(each.peer, each.message) for each in effects if isinstance(each, Send)]
    return [(peer, message) for peer, message in sent if isinstance(message, Backup)]


def texts(message: Backup) -> list[tuple[PeerId, tuple[str, ...]]]:
    return [(route.contact.peer, route.predicates) for route in message.routes]


def test_exactly_as_many_as_configured_keep_what_changes() -> None:
    parts = Parts(backups=2)
    first = parts.add(ROUTE, "stock/apple")
    assert [(peer, message.fresh) for peer, message in first] == [(KNOWN[0], True), (KNOWN[1], True)]
    second = parts.add(OTHER, "stock/pear")
    assert [(peer, message.fresh, texts(message)) for peer, message in second] == [
        (KNOWN[0], False, [(OTHER, ("pear/stock",))]),
        (KNOWN[1], False, [(OTHER, ("pear/stock",))]),
    ]
    assert parts.add(OURS, "stock") == [], "own subscriptions end with the node"
    assert Parts(backups=0).add(ROUTE, "stock") == []


@pytest.mark.parametrize("is_rendezvous", [True, False])
def test_the_nearest_keep_filters_to_the_key_of_a_rendezvous_and_else_to_the_node(
    is_rendezvous: bool,
) -> None:
    key = attribute_key("stock")
    some = (PeerId(bytes([number]) * 32) for number in range(40))
    peers = sorted(some, key=lambda peer: distance(peer, key))
    ours, *others = peers if is_rendezvous else reversed(peers)

    config, nearest = ContentConfig(confirm=False, backups=3), Known(*others)
    out = Outbox()
    reach, table = Reach(config, out), FilterTable()
    for peer in others:
        reach.handle_link_up(peer)
    elections = Elections(ours, config, nearest, out)
    elections.decide("stock", 0.0)
    book = RouteBook(config, reach, out)
    backups = Backups(Station(ours, config, reach, table, book, out), nearest, elections)
    predicate = read_predicate("stock")
    table.add(ROUTE, "stock", predicate)
    backups.tell_change("stock", ROUTE, (predicate,), False, 0.0)
    told_to = [peer for peer, _ in told(out.take())]
    middle = key if is_rendezvous else position(ours)
    assert told_to == sorted(others, key=lambda peer: distance(peer, middle))[:3]


def test_a_dead_keeper_is_replaced_and_its_successor_told_all_and_the_others_go_on() -> None:
    parts = Parts(backups=2)
    parts.add(ROUTE, "stock/apple")
    parts.add(OTHER, "stock/pear")
    parts.elections.suspects.avoid(KNOWN[0], 0.0)
    ((peer, message),) = told(parts.after(parts.backups.replace_keeper, KNOWN[0], 0.0))
    assert (peer, message.fresh) == (KNOWN[2], True)
    assert texts(message) == [(ROUTE, ("apple/stock",)), (OTHER, ("pear/stock",))]
    assert [peer for peer, _ in parts.add(ROUTE, "stock/fig")] == [KNOWN[1], KNOWN[2]]
    assert parts.backups.contacts(0.0) == (Contact(KNOWN[1]), Contact(KNOWN[2]))


def test_who_does_not_answer_is_asked_again_and_then_replaced() -> None:
    parts = Parts(backups=1, tries=2)
    parts.add(ROUTE, "stock")
    effects = parts.after(parts.backups.tell_change, "stock", ROUTE, (read_predicate("stock"),), False, 0.0)
    (timer,) = [each.timer for each in effects if isinstance(each, SetTimer)]
    again = parts.after(parts.backups.handle_timeout, timer, 2.0)
    assert [peer for peer, _ in told([*again])] == [KNOWN[0]]
    (timer,) = [each.timer for each in again if isinstance(each, SetTimer)]
    given_up = parts.after(parts.backups.handle_timeout, timer, 6.0)
    assert [each.reason for each in given_up if isinstance(each, Record)] == [Reason.TIMEOUT]
    assert [peer for peer, _ in told([*given_up])] == [KNOWN[1]]


def test_who_has_no_room_is_replaced_and_answers_count_only_from_who_was_told() -> None:
    parts = Parts(backups=1)
    ((peer, message),) = parts.add(ROUTE, "stock")
    (stale,) = parts.after(parts.backups.handle_kept, OTHER, Kept(message.number, None), 0.0)
    assert isinstance(stale, Record)
    assert not parts.backups.is_settled
    effects = parts.after(parts.backups.handle_kept, peer, Kept(message.number, Reason.TOO_MANY), 0.0)
    assert [peer for peer, _ in told([*effects])] == [KNOWN[1]]
    ((_, again),) = told(effects)
    parts.backups.handle_kept(KNOWN[1], Kept(again.number, None), 0.0)
    assert parts.backups.is_settled


def test_each_period_all_is_told_anew() -> None:
    parts = Parts(backups=1)
    parts.add(ROUTE, "stock/apple")
    ((_, message),) = told(parts.after(parts.backups.begin_period, 900.0))
    assert (message.fresh, texts(message)) == (True, [(ROUTE, ("apple/stock",))])


def test_many_filters_are_told_in_parts() -> None:
    parts = Parts(backups=1)
    for number in range(100):
        parts.table.add(ROUTE, "stock", read_predicate(f"stock/a{number}"))
    sent = [message for _, message in told(parts.after(parts.backups.mend_keepers, "stock", 0.0))]
    assert sum(len(route.predicates) for message in sent for route in message.routes) == 100
    assert all(len(route.predicates) <= 32 for message in sent for route in message.routes)


# In a network.


@pytest.mark.parametrize("crashed", [(1,), (2,), (1, 2), (2, 3), (0,), (0, 1)])
def test_what_hangs_on_crashed_nodes_is_served_from_what_others_keep(crashed: tuple[int, ...]) -> None:
    """They crash silently, and nobody is sent anything later for having moved: backups alone help."""
    world, ordered = chain(8, ContentConfig(backups=2, lately=0.0), most_farther=None)
    readers = [each for each in range(1, 7) if each not in crashed]
    for place in readers:
        world.subscribe(ordered[place], "stock")
    world.run(10.0)
    for place in crashed:
        world.crash(ordered[place], silent=True)
    world.publish(ordered[7], "stock", b"x")
    world.run(120.0)
    assert [place for place in readers if world.bodies(ordered[place]) != [b"x"]] == []


def test_with_more_crashes_than_backups_what_is_lost_is_told() -> None:
    world, ordered = chain(8, ContentConfig(backups=0, lately=0.0), most_farther=None)
    world.subscribe(ordered[3], "stock")
    world.run(10.0)
    for place in (1, 2):
        world.crash(ordered[place], silent=True)
    request = world.publish(ordered[0], "stock", b"x", confirm=120.0)
    world.run(120.0)
    assert world.bodies(ordered[3]) == []
    assert fates(world, request) == (AttributeFate("stock", 0, 1, None),)


def test_a_partition_works_on_both_sides_and_heals() -> None:
    world = ContentWorld(24, 3, ContentConfig(refresh=60.0))
    world.run(0.5)
    for name in world.names[:20]:
        world.subscribe(name, "stock")
    world.run(10.0)
    peers = [world.identities[name].peer for name in world.names]
    sides = [peers[0:10] + peers[20:22], peers[10:20] + peers[22:24]]
    world.network.partition(sides)
    world.tables.part(sides)
    world.run(130.0)
    world.publish("node20", "stock", b"one side")
    world.publish("node22", "stock", b"other side")
    world.run(60.0)
    assert [world.bodies(name) for name in world.names[:20]] == [[b"one side"]] * 10 + [[b"other side"]] * 10
    world.network.heal()
    world.tables.part([])
    world.run(400.0)
    world.publish("node20", "stock", b"all")
    world.run(60.0)
    assert [world.bodies(name)[-1] for name in world.names[:20]] == [b"all"] * 20


def between() -> LoneScout:
    """A node on the way from one who subscribes to the rendezvous; another keeps its filters."""
    config = ContentConfig(backups=1, tries=1)
    machine = LoneScout(1, Listed(FAR, FARTHER, NEAR, hints=("tls://a:1",)), config)
    for peer in (NEAR, FAR, FARTHER):
        machine.up(peer)
    effects = machine.hear(FARTHER, Subscribe(1, "stock", "stock", 0), START)
    (up,) = [each.message for each in effects if isinstance(each, Send) and each.peer == NEAR]
    assert isinstance(up, Subscribe)
    assert [each.peer for each in up.backups] == [FAR]
    ((peer, message),) = told([*effects])
    assert (peer, message.number, texts(message)) == (FAR, 1, [(FARTHER, ("stock",))])
    return machine


@pytest.mark.parametrize(
    "end",
    [
        lambda machine: machine.fire(BackupDue(1), START + 2.0),
        lambda machine: machine.hear(FAR, Kept(1, Reason.TOO_MANY), START),
        lambda machine: machine.down(FAR),
    ],
    ids=["silent", "unwilling", "gone"],
)
def test_the_next_hop_is_told_at_once_whom_to_ask_instead_of_a_keeper(
    end: Callable[[LoneScout], Said],
) -> None:
    effects = end(between())
    told_up = [each.message for each in effects if isinstance(each, Send) and each.peer == NEAR]
    (keepers,) = [each for each in told_up if isinstance(each, Keepers)]
    assert [each.peer for each in keepers.backups] == [FARTHER]


@pytest.mark.parametrize("is_back", [False, True])
def test_keepers_and_the_next_hop_are_told_of_a_route_that_stayed_away(is_back: bool) -> None:
    machine = between()
    machine.hear(FAR, Kept(1, None), START)
    assert SetTimer(ContentConfig().avoided, RouteLapse(FARTHER)) in machine.down(FARTHER)
    if is_back:
        machine.up(FARTHER)
    effects = machine.fire(RouteLapse(FARTHER), START + 100.0)
    lapsed = told([*effects])
    kept = [(peer, texts(message), message.routes[0].whole) for peer, message in lapsed if message.routes]
    assert kept == ([] if is_back else [(FAR, [(FARTHER, ())], True)])
    withdrawn = [each for each in effects if isinstance(each, Send) and isinstance(each.message, Replace)]
    assert withdrawn == ([] if is_back else [Send(NEAR, Replace("stock", ()))])
