"""A rendezvous that is young knows who came before it."""

from __future__ import annotations

from tests.content.chains import nearest_first
from tests.content.directories import Known

from linnet.content.config import ContentConfig
from linnet.content.filter_backup import Copies
from linnet.content.filter_table import FilterTable
from linnet.content.messages import Backup
from linnet.content.predicate import read_predicate
from linnet.content.publish_path import Predecessors
from linnet.content.rendezvous import Claims
from linnet.content.routes import Reach
from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox
from linnet.sim.content.world import ContentWorld

OURS, FIRST, SECOND = (PeerId(bytes([number]) * 32) for number in range(1, 4))


def machine() -> tuple[Predecessors, Claims, Copies, FilterTable]:
    config = ContentConfig(refresh=100.0)
    out = Outbox()
    claims = Claims(config, Known(), Reach(config, out), out)
    copies, table = Copies(config), FilterTable()
    return Predecessors(OURS, config, claims, copies, table), claims, copies, table


def test_who_claimed_or_had_its_filters_kept_came_before_until_a_period_is_over() -> None:
    before, claims, copies, _ = machine()
    claims.handle_claim(FIRST, "stock")
    copies.keep(SECOND, Backup(1, "stock", True, True, ()))
    assert before.of("stock", 0.0) == []
    before.begin("stock", 0.0)
    assert before.of("stock", 99.0) == [Contact(FIRST), Contact(SECOND)]
    assert before.of("stock", 100.0) == []
    before.tidy(100.0)
    assert not before.learn("stock", Contact(FIRST), 100.0)


def test_who_subscribed_here_is_a_route_like_others() -> None:
    before, claims, _, table = machine()
    claims.handle_claim(FIRST, "stock")
    before.begin("stock", 0.0)
    table.add(FIRST, "stock", read_predicate("stock"))
    assert before.of("stock", 1.0) == []


def test_others_may_name_who_came_before_but_only_so_many_and_only_to_the_young() -> None:
    before, *_ = machine()
    assert not before.learn("stock", Contact(FIRST), 1.0)
    before.begin("stock", 0.0)
    assert not before.learn("stock", Contact(OURS), 1.0)
    peers = [PeerId(bytes([number]) * 32) for number in range(10, 16)]
    assert [before.learn("stock", Contact(peer), 1.0) for peer in peers] == [True] * 4 + [False] * 2
    before.forget("stock")
    assert before.of("stock", 1.0) == []


def test_a_node_that_joins_closest_is_helped_by_who_was_the_rendezvous() -> None:
    """Before it joins, nobody knows it; then all do. Its first event finds subscriptions from before."""
    world = ContentWorld(20, 5)
    ordered = nearest_first(world)
    young = world.identities[ordered[0]].peer
    known = {name: world.tables.known(world.identities[name].peer) for name in world.names}
    for name in ordered[1:]:
        world.tables.know(world.identities[name].peer, [each for each in known[name] if each != young])
    world.run(0.5)
    for name in ordered[5:]:
        world.subscribe(name, "stock")
    world.run(5.0)
    assert world.scouts[ordered[1]].elections.held == ["stock"]
    for name in ordered[1:]:
        world.tables.know(world.identities[name].peer, known[name])
    world.publish(ordered[3], "stock", b"x")
    world.run(30.0)
    assert world.scouts[ordered[0]].elections.held == ["stock"]
    assert [name for name in ordered[5:] if world.bodies(name) != [b"x"]] == []
