"""Whole nodes on simulated links: joining, finding, keeping, dying, lying."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from random import Random
from statistics import fmean

import pytest
from msgspec.structs import replace
from tests.overlay.kademlia.kademlia_world import Host, KademliaWorld

from linnet.core.effects import Blame, Send, SetTimer
from linnet.core.errors import Refused
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.machine.part import Part, on_notice
from linnet.machine.router import Router
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.messages import (
    FindNode,
    FindRecord,
    KademliaAnswer,
    KademliaQuestion,
    KeepRecord,
    NodeIsHere,
    NodesAre,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.part import PROTOCOL, WAITING, Kademlia, RefreshDue, RepublishDue
from linnet.overlay.kademlia.routing_table import NodeId, record_key
from linnet.overlay.kademlia.value_records import (
    NodesFound,
    Outcome,
    Placed,
    PlaceInNetwork,
    RecordsFound,
    SeekNodes,
    SeekRecords,
    Stored,
    sign_record,
)
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

SOAK = bool(os.environ.get("LINNET_SOAK"))
SMALL = KademliaConfig(k=8, patience=2.0)
QUICK = KademliaConfig(k=8, patience=2.0, lifetime=600.0, republish=100.0, refresh=200.0)
KEY = record_key(b"test", b"music")
ALICE = SigningKey.generate(Random(1).randbytes)


def record(now: float, version: int = 0, life: int = 3600, key: NodeId = KEY) -> Stored:
    return sign_record(ALICE, key, int(now * 1000) + version, int(now) + life, b"here")


def town(count: int, seed: int = 1, config: KademliaConfig = SMALL) -> KademliaWorld:
    world = KademliaWorld(seed, config)
    world.grow(count, settle=2.0)
    return world


def living(world: KademliaWorld) -> list[Host]:
    return [host for host in world.hosts.values() if host.alive]


def right_share(world: KademliaWorld, lookups: int) -> tuple[float, float]:
    """The share of lookups whose nearest node is the nearest in truth, and the mean hops of all."""
    rng, right, hops = Random(9), 0, []
    for _ in range(lookups):
        host, target = rng.choice(living(world)), NodeId(rng.randbytes(32))
        found = world.find(host, target)
        right += found.contacts[0].peer == world.nearest(target, host)
        hops.append(found.hops)
    return right / lookups, fmean(hops)


def test_lookups_find_the_nearest_also_when_three_of_ten_are_dead() -> None:
    world = town(400 if SOAK else 48)
    lookups = 200 if SOAK else 20
    assert right_share(world, lookups)[0] == 1.0
    rng = Random(3)
    world.kill(rng.sample(living(world), round(0.3 * len(world.hosts))))
    share, _ = right_share(world, lookups)
    assert share == 1.0
    assert world.reasons[Kind.DROPPED, Reason.UNREACHABLE] > 0


def test_hops_grow_with_the_logarithm() -> None:
    sizes = (100, 1000, 10_000) if SOAK else (16, 64)
    for count in sizes:
        world = town(count, config=KademliaConfig(k=20 if SOAK else 4))
        share, hops = right_share(world, 100 if SOAK else 20)
        print(f"{count} nodes: the nearest found by {share:.0%}, {hops:.2f} hops, {world.messages} messages")
        assert share >= 0.99
        assert hops <= 1 + math.log2(count) / 2, (count, hops)


def test_what_is_placed_is_found_by_others_though_those_who_keep_it_die() -> None:
    world = town(30)
    alice, *_, carol = living(world)
    placed = world.place(alice, record(world.now))
    assert (len(placed.kept), placed.refused) == (8, ())
    found = world.gather(carol, KEY)
    assert [each.body for each in found.records] == [b"here"]
    world.kill(world.hosts[peer] for peer in placed.kept[:6] if peer != carol.contact.peer)
    assert len(world.gather(carol, KEY).records) == 1
    newer = record(world.now, version=1)
    world.place(alice, newer)
    assert world.gather(carol, KEY).records[0] == newer, "the newest first"


def test_what_is_ours_is_placed_again_until_it_ends() -> None:
    world = town(16, config=QUICK)
    alice, *_, carol = living(world)
    world.place(alice, record(world.now, life=400))
    world.kill(host for host in living(world) if len(host.machine.shelf) and host not in (alice, carol))
    world.run(120.0)
    assert len(world.gather(carol, KEY).records) == 1, "others keep it by now"
    world.run(400.0)
    assert world.gather(carol, KEY).records == ()
    world.run(250.0)
    assert [len(host.machine.shelf) for host in living(world)] == [0] * len(living(world))


def test_a_record_that_was_withdrawn_is_not_placed_again() -> None:
    world = town(10, config=QUICK)
    alice, *_ = living(world)
    said = record(world.now, life=90_000)
    world.place(alice, said)
    alice.machine.withdraw_record(said.key, said.owner)
    world.run(600.0 + 250.0)
    assert [len(host.machine.shelf) for host in living(world)] == [0] * 10


def test_refresh_makes_a_table_good_again_after_half_of_it_has_changed() -> None:
    world = town(24, config=QUICK)
    world.kill(living(world)[:12])
    world.grow(12, settle=2.0)
    world.run(700.0)
    for host in living(world):
        contacts = host.machine.table.contacts()
        alive = sum(world.hosts[each.peer].alive for each in contacts)
        assert alive >= 0.8 * len(contacts), "three refreshes later nearly all live"
        assert alive >= 8
    assert right_share(world, 20)[0] == 1.0


def test_alone_everything_ends_at_once() -> None:
    world = KademliaWorld(1, SMALL)
    alone = world.add()
    world.join(alone, ())
    assert world.find(alone, KEY) == NodesFound(2, KEY, (), 0, 0)
    assert world.place(alone, record(world.now)) == Placed(3, (), ())
    assert replace(world.gather(alone, KEY), number=0) == RecordsFound(0, (), 0, 0, 0)


def test_a_bucket_that_is_full_pings_its_oldest_and_keeps_it_if_it_answers() -> None:
    world = town(40, config=KademliaConfig(k=2, replacements=2))
    host = living(world)[0]
    before = host.machine.table.contacts()
    world.kill(each for each in living(world) if each.contact in before)
    rng = Random(5)
    for other in living(world)[1:]:
        world.find(other, NodeId(rng.randbytes(32)))
        world.find(host, NodeId(rng.randbytes(32)))
    world.run(10.0)
    after = host.machine.table.contacts()
    assert after
    assert not {each.peer for each in after} & {each.peer for each in before}, "the dead made room"


def test_who_is_up_before_those_of_its_configuration_tries_again() -> None:
    world = KademliaWorld(1, SMALL)
    first, second = world.add(), world.add()
    first.alive = False
    world.join(second, [first])
    world.run(10.0)
    assert len(second.machine.table) == 0
    first.alive = True
    world.run(SMALL.rejoin + 5.0)
    assert [each.peer for each in second.machine.table.contacts()] == [first.contact.peer]


def test_who_began_among_a_few_who_are_cut_off_finds_the_others_in_the_end() -> None:
    world = KademliaWorld(1, SMALL)
    first, second, third = world.add(), world.add(), world.add()
    first.alive = False
    world.join(second, [first])
    world.join(third, [second])
    world.run(SMALL.rejoin + 10.0)
    assert [each.peer for each in second.machine.table.contacts()] == [third.contact.peer]
    first.alive = True
    world.run(2 * SMALL.rejoin + 5.0)
    assert first.contact.peer in {each.peer for each in second.machine.table.contacts()}


def test_who_has_lost_all_others_finds_them_again_when_they_are_back() -> None:
    world = KademliaWorld(1, SMALL)
    first, second, third = world.add(), world.add(), world.add()
    world.join(first, ())
    for host in (second, third):
        world.join(host, [first])
        world.run(10.0)
    others = [first, second]
    world.kill(others)
    for _ in range(SMALL.failures):
        world.find(third, KEY)
    assert len(third.machine.table) == 0
    for host in others:
        host.alive = True
    assert {each.peer for each in world.find(third, KEY).contacts} == {each.contact.peer for each in others}


def test_after_a_restart_those_are_asked_who_were_known_before() -> None:
    world = town(16)
    host = living(world)[0]
    world.kill([host])
    host.restart()
    host.alive = True
    world.join(host, ())
    world.run(10.0)
    assert len(host.machine.table) >= 4
    target = NodeId(Random(2).randbytes(32))
    assert world.find(host, target).contacts[0].peer == world.nearest(target, host)


class Lying(KademliaWorld):
    """Some of its nodes name twenty others that do not exist, whatever they are asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, SMALL)
        self.liars: dict[PeerId, None] = {}
        self._lies = Random(f"lies/{seed}")

    def _perform(self, host: Host, effects: Iterable[Effect]) -> None:
        if host.contact.peer in self.liars:
            effects = [self._bent(each) for each in effects]
        super()._perform(host, effects)

    def _bent(self, effect: Effect) -> Effect:
        if isinstance(effect, Send) and isinstance(effect.message, NodesAre):
            invented = tuple(
                Contact(PeerId(self._lies.randbytes(32)), ("tls://203.0.113.9:1",)) for _ in range(20)
            )
            return Send(effect.peer, replace(effect.message, contacts=invented))
        return effect


def test_who_names_nodes_that_do_not_exist_costs_dials_and_leads_nobody_astray() -> None:
    world = Lying(1)
    hosts = world.grow(40, settle=2.0)
    world.liars = {host.contact.peer: None for host in Random(4).sample(hosts, 8)}
    rng, right = Random(9), 0
    honest = [host for host in hosts if host.contact.peer not in world.liars]
    for _ in range(20):
        host, target = rng.choice(honest), NodeId(rng.randbytes(32))
        found = world.find(host, target)
        right += found.contacts[0].peer == world.nearest(target, host)
        assert all(each.peer in world.hosts for each in found.contacts), "nobody is found who was not met"
    assert right >= 19
    assert all(each.peer in world.hosts for host in honest for each in host.machine.table.contacts())


class Alone(Part):
    """One machine, and everything by hand; it hears how lookups and placings end."""

    def __init__(self, config: KademliaConfig = SMALL) -> None:
        own = Contact(PeerId(b"o" * 32), ("tls://192.0.2.1:1",))
        self.out = Outbox()
        self.machine = Kademlia(own, config, MemoryStore().cells, Random(1), self.out)
        self.router = Router(self.out, (self.machine, self))
        self.outcomes: list[Outcome] = []
        self.other = PeerId(b"p" * 32)
        hello = Hello(1, 1, {PROTOCOL: 1}, listens=("tls://198.51.100.1:1",))
        self.router.input(LinkUp(self.other, hello, True, None), 0.0)

    @on_notice(NodesFound)
    def hear_nodes(self, notice: NodesFound, now: float) -> None:
        self.outcomes.append(notice)

    @on_notice(RecordsFound)
    def hear_records(self, notice: RecordsFound, now: float) -> None:
        self.outcomes.append(notice)

    @on_notice(Placed)
    def hear_keepers(self, notice: Placed, now: float) -> None:
        self.outcomes.append(notice)

    def question(self) -> KademliaQuestion:
        """The one that was sent since effects were last taken."""
        (asked,) = [each.message for each in self.out.take() if isinstance(each, Send)]
        assert isinstance(asked, KademliaQuestion)
        return asked

    def answer(self, message: KademliaAnswer, now: float = 0.0) -> None:
        self.router.message(self.other, message, now)

    def tell(self, notice: Notice, now: float = 0.0) -> list[Effect]:
        """What comes of something that another part says."""
        self.out.notify(notice)
        self.router.pass_on_notices(now)
        return self.out.take()


def test_records_that_are_false_or_of_another_key_are_blamed_and_left_out() -> None:
    now = 1_800_000_000.0
    alone = Alone()
    alone.out.notify(SeekRecords(77, KEY))
    alone.router.pass_on_notices(now)
    asked = alone.question()
    assert isinstance(asked, FindRecord)
    good = record(now)
    forged, stray = replace(good, body=b"there"), record(now, key=record_key(b"test", b"tech"))
    ended = record(now - 9000)
    alone.answer(RecordsAre(asked.request, (good, forged, stray, ended), (), None), now)
    assert [each.reason for each in alone.out.take() if isinstance(each, Blame)] == [
        Reason.BAD_SIGNATURE,
        Reason.PROTOCOL_ERROR,
    ]
    assert alone.outcomes == [RecordsFound(77, (good,), 1, 1, 1)]


def test_answers_of_another_sort_and_refusals_are_silence() -> None:
    for answer, reason in (
        (lambda request: NodeIsHere(request), Reason.PROTOCOL_ERROR),
        (lambda request: RecordsAre(request, (), (), Reason.FLOODING), Reason.FLOODING),
    ):
        alone = Alone()
        alone.out.notify(SeekRecords(77, KEY))
        alone.router.pass_on_notices(0.0)
        alone.answer(answer(alone.question().request))
        rejected = Record(Kind.REJECTED, peer=alone.other, reason=reason, note="kademlia: a question")
        assert rejected in alone.out.take()
        assert alone.outcomes == [RecordsFound(77, (), 0, 1, 0)]
    alone.answer(NodeIsHere(99))
    assert alone.out.take() == [
        Record(Kind.REJECTED, peer=alone.other, reason=Reason.STALE, note="an answer nobody waits for")
    ]


def test_who_does_not_take_part_is_not_waited_for() -> None:
    alone = Alone()
    stranger = PeerId(b"s" * 32)
    alone.machine.bootstrap = (Contact(stranger, ("tls://203.0.113.1:1",)),)
    alone.machine.start(0.0)
    alone.out.take()
    alone.router.input(LinkUp(stranger, Hello(1, 1, {"link": 1}), True, None), 0.0)
    effects = alone.out.take()
    assert any(isinstance(each, Record) and each.reason is Reason.UNSUPPORTED for each in effects)
    assert stranger not in alone.machine.table


def test_limits_end_in_reasons() -> None:
    now = 1_800_000_000.0
    alone = Alone(KademliaConfig(lookups=1, own=1))
    alone.tell(SeekNodes(KEY), now)
    with pytest.raises(Refused) as caught:
        alone.machine.place_record(record(now), now)
    assert caught.value.reason is Reason.QUEUE_FULL
    alone.out.take()
    alone.router.timer(RepublishDue(), now)
    assert alone.out.take() == [SetTimer(3600.0, RepublishDue())]
    alone = Alone(KademliaConfig(own=1))
    with pytest.raises(Refused) as caught:
        alone.machine.place_record(record(now - 9000), now)
    assert caught.value.reason is Reason.STALE
    alone.machine.place_record(record(now), now)
    with pytest.raises(Refused) as caught:
        alone.machine.place_record(record(now, key=record_key(b"test", b"tech")), now)
    assert caught.value.reason is Reason.TOO_MANY


def test_when_too_much_is_under_way_a_record_is_placed_later_and_that_is_recorded() -> None:
    now = 1_800_000_000.0
    alone = Alone(KademliaConfig(lookups=1))
    alone.machine.place_record(record(now), now)
    alone.router.timer(RepublishDue(), now)
    note = "kademlia: a record is not placed again this time"
    assert Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=note) in alone.out.take()
    alone.router.timer(RefreshDue(), now)
    assert alone.out.take()[0] == SetTimer(3600.0, RefreshDue())


def test_lookups_of_other_parts_wait_for_their_turn_and_until_others_were_met() -> None:
    alone = Alone(KademliaConfig(lookups=1))
    keys = [record_key(b"test", bytes([number])) for number in range(3)]
    alone.machine.start(0.0)
    joining = alone.question()
    for key in keys:
        assert alone.tell(SeekNodes(key)) == [], "it has met nobody"
    alone.answer(NodesAre(joining.request, (), None))
    for key in keys:
        asked = alone.question()
        assert asked == FindNode(asked.request, key)
        alone.answer(NodesAre(asked.request, (), None))
    contact = Contact(alone.other, ("tls://198.51.100.1:1",))
    assert alone.outcomes == [NodesFound(2 + n, key, (contact,), 1, 1) for n, key in enumerate(keys)]


def test_where_too_many_lookups_wait_what_is_known_is_told_at_once() -> None:
    alone = Alone()
    alone.machine.start(0.0)
    alone.out.take()
    for number in range(WAITING):
        assert alone.tell(SeekNodes(record_key(b"test", str(number).encode()))) == []
    assert alone.tell(SeekNodes(KEY)) == [
        Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note="a lookup for a rendezvous")
    ]
    assert alone.outcomes == [NodesFound(0, KEY, (Contact(alone.other, ("tls://198.51.100.1:1",)),), 0, 0)]


def test_searches_of_other_parts_end_in_the_number_that_they_gave() -> None:
    now = 1_800_000_000.0
    alone = Alone(KademliaConfig(lookups=1))
    (asked,) = [each.message for each in alone.tell(SeekRecords(77, KEY), now) if isinstance(each, Send)]
    assert isinstance(asked, FindRecord)
    assert alone.tell(SeekRecords(78, KEY), now) == [
        Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note="a search for a record of a name")
    ]
    alone.answer(RecordsAre(asked.request, (record(now),), (), None), now)
    assert alone.outcomes == [RecordsFound(78, (), 0, 0, 0), RecordsFound(77, (record(now),), 1, 1, 1)]


def test_a_record_of_another_part_is_placed_once_and_nobody_is_told() -> None:
    now = 1_800_000_000.0
    alone = Alone()
    alone.out.notify(PlaceInNetwork(record(now)))
    alone.router.pass_on_notices(now)
    alone.answer(NodesAre(alone.question().request, (), None), now)
    handed = alone.question()
    assert handed == KeepRecord(handed.request, record(now))
    alone.answer(RecordKept(handed.request, None), now)
    assert (alone.machine.placed_records, alone.outcomes) == (0, [])
    alone.out.take()
    (dropped,) = alone.tell(PlaceInNetwork(record(now - 9000)), now)
    assert isinstance(dropped, Record)
    assert dropped.reason is Reason.STALE
