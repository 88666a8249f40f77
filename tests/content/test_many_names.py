"""Names and keys are free: what strangers make up takes no more room than is configured."""

from __future__ import annotations

from collections.abc import Iterable

from tests.content.directories import Known
from tests.content.one_event import lone_context
from tests.content.one_scout import FAR, FARTHER, IDENTITIES, NEAR, LoneScout, scout

from linnet.content.application import TOPIC
from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.config import ContentConfig
from linnet.content.messages import Closer, Publish, Replace, Subscribe, Subscribed, Taken
from linnet.content.passing import EventSigner
from linnet.content.predicate import Attributes, read_attributes
from linnet.content.rendezvous import Suspects
from linnet.core.effects import Send
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.sim.clock import START
from linnet.testing.networks import named_peer
from linnet.trace.records import Kind, Record

SMALL = ContentConfig(routes=4, waiting=3, remembered=10, held=6)
OWN = IDENTITIES[1].peer
SIGNER = EventSigner(lone_context(IDENTITIES[2]))


def names_nearer_than(peer: PeerId, count: int) -> list[str]:
    """Attributes to which the machine is nearer than a peer: anyone can make them up."""
    keys = ((f"n{number}", attribute_key(f"n{number}")) for number in range(10_000))
    return [name for name, key in keys if distance(OWN, key) < distance(peer, key)][:count]


def subscribed(effects: Iterable[object]) -> list[Subscribed]:
    sent = (each.message for each in effects if isinstance(each, Send))
    return [message for message in sent if isinstance(message, Subscribed)]


def publish(machine: LoneScout, name: str) -> list[object]:
    passing = SIGNER.sign(TOPIC, Attributes(read_attributes(name).conditions), b"x", START)
    return [*machine.hear(FAR, Publish(name, passing.unit, passing.card, 1), START)]


def alone(config: ContentConfig = SMALL) -> LoneScout:
    """A machine that knows of nobody else: it is the rendezvous of everything once a lookup says so."""
    machine = LoneScout(1, Known(), config)
    machine.up(FAR)
    machine.up(FARTHER)
    return machine


def test_attributes_that_nobody_asked_for_are_forgotten_when_there_are_too_many() -> None:
    machine = alone()
    machine.hear(FAR, Subscribe(1, "stock", "stock", 1), START)
    machine.find(attribute_key("stock"))
    for name in names_nearer_than(FAR, 60):
        publish(machine, name)
        machine.find(attribute_key(name))
        assert len(machine.scout.elections.held) <= 2 * SMALL.routes
    assert "stock" in machine.scout.elections.held, "what somebody asked for stays"
    assert machine.scout.arrivals == 60
    kept = machine.scout._predecessors, machine.scout._hot, machine.scout._backups
    assert len(kept[0]._since) <= 2 * SMALL.routes
    assert len(kept[1]._counted) <= 2 * SMALL.routes
    for by_name in (kept[2]._found, kept[2]._around, kept[2]._given):
        assert len(by_name) <= 2 * SMALL.routes
    again = names_nearer_than(FAR, 1)[0]
    assert again not in machine.scout.elections.held
    publish(machine, again)
    machine.find(attribute_key(again))
    assert machine.scout.arrivals == 61, "a forgotten one is found again"


def test_events_that_wait_for_lookups_are_no_more_than_are_remembered() -> None:
    machine = alone()
    told: list[object] = []
    for name in names_nearer_than(FAR, 40):
        told += publish(machine, name)
    parked = machine.scout._publish_path._parked
    assert sum(map(len, parked.values())) == len(parked) == SMALL.remembered
    refused = [each.message for each in told if isinstance(each, Send) and isinstance(each.message, Taken)]
    assert [each.reason for each in refused] == [Reason.TOO_MANY] * 30


def test_one_more_who_waits_for_the_same_answer_is_refused() -> None:
    machine = scout(SMALL)
    effects = [*machine.hear(FAR, Subscribe(1, "stock", "stock", 1), START)]
    for number in range(2, 9):
        effects += machine.hear(FAR, Subscribe(number, "stock", "stock/tea", 1), START)
    refused = [(message.number, message.reason) for message in subscribed(effects)]
    assert refused == [(number, Reason.QUEUE_FULL) for number in range(4, 9)]
    (ask,) = machine.scout._router._open.values()
    assert len(ask.waiters) == SMALL.waiting


def test_predicates_that_grow_wider_and_wider_are_refused_when_too_many_wait() -> None:
    machine = alone()
    effects: list[object] = []
    for number in range(1, 11):
        effects += machine.hear(FAR, Subscribe(number, "stock", f"stock[0,{number}]", 1), START)
    refused = [(message.number, message.reason) for message in subscribed(effects)]
    assert refused == [(number, Reason.QUEUE_FULL) for number in range(7, 11)]
    effects = [*machine.find(attribute_key("stock"))]
    assert [message.number for message in subscribed(effects)] == list(range(1, 7))
    assert subscribed([*machine.hear(FAR, Subscribe(11, "stock", "stock[0,11]", 1), START)])


def test_peers_that_were_avoided_longest_ago_are_forgotten_first() -> None:
    suspects = Suspects(SMALL)
    peers = [named_peer(f"p{number}") for number in range(20)]
    for peer in peers:
        suspects.handle_link_down(peer, Reason.UNSUPPORTED, START)
        suspects.handle_link_down(peer, Reason.FLOODING, START)
    assert [peer for peer in peers if peer in suspects] == peers[-SMALL.routes :]
    assert [len(each) for each in (suspects._avoided, suspects._shuns_us, suspects._absent)] == [4, 4, 4]
    suspects.avoid(peers[-4], START)
    suspects.avoid(peers[0], START)
    assert peers[-4] in suspects, "its turn came later again"
    assert peers[-3] not in suspects


def test_messages_to_keepers_that_do_not_answer_are_repeated_up_to_a_number() -> None:
    config = ContentConfig(routes=1, backups=2)
    machine = LoneScout(1, Known(NEAR, FAR, FARTHER, hints=("tls://near:1",)), config)
    for peer in (NEAR, FAR, FARTHER):
        machine.up(peer)
    effects: list[object] = []
    for number in range(40):
        effects += machine.hear(FAR, Subscribe(1, "stock", f"stock[0,{number + 1}]", 1), START)
    assert len(machine.scout._backups._open) == 8
    full = [each for each in effects if isinstance(each, Record) and each.reason is Reason.QUEUE_FULL]
    assert full
    assert {each.kind for each in full} == {Kind.CONTROL}


def test_names_that_are_asked_for_and_given_up_leave_nothing_behind() -> None:
    machine = LoneScout(1, Known(NEAR, hints=("tls://near:1",)), SMALL)
    for peer in (NEAR, FAR, FARTHER):
        machine.up(peer)
    for name in names_nearer_than(FAR, 40):
        machine.hear(FAR, Subscribe(1, name, name, 1), START)
        machine.find(attribute_key(name))
        machine.hear(FAR, Replace(name, ()), START)
    scout, most = machine.scout, 2 * SMALL.routes
    backups, elections = scout._backups, scout.elections
    for kept in (backups._found, backups._around, backups._given, elections._lost, elections._better):
        assert len(kept) <= most


def test_a_rendezvous_that_gave_way_does_not_count_as_lost_any_more() -> None:
    machine = alone()
    machine.down(FARTHER)
    for name in names_nearer_than(FAR, 6):
        publish(machine, name)
        machine.find(attribute_key(name))
        assert machine.scout.elections.is_lost(name)
        machine.hear(FAR, Closer(name, Contact(name_next_to(name), ("tls://x:1",))), START)
    elections = machine.scout.elections
    assert len(elections.held) < 6
    assert [*elections._lost] == elections.held


def name_next_to(attribute: str) -> PeerId:
    """A key that is nearer to an attribute than any other: anyone can make it up."""
    return PeerId(bytes(attribute_key(attribute)))
