"""A device that signs two events under one number is proved to have done so, to everybody."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.streams.attackers import Attacker
from tests.streams.village import STREAM, Village

from linnet.core.errors import InvalidEvent
from linnet.core.ids import Contact, EventId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery import forks as forks_module
from linnet.delivery.forks import FORK_BYTES, Forks, RecentUnits, differing_number, told_fork
from linnet.delivery.items import Forked
from linnet.delivery.messages import Data, Fork
from linnet.event.event import Event, Spot, Verified
from linnet.event.signing import message_tail, sign_unit
from linnet.peer.config import Identity
from linnet.peer.interface import Connect
from linnet.sim.seeded_random import seeded_identity
from linnet.store.memory import MemoryStore
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind

TOPIC = topic_of(STREAM)
EVE = seeded_identity(7, "eve", 1_600_000_000.0)


def signed(
    who: Identity, number: int, *bodies: bytes, prev: EventId | None = None, stream: str = STREAM
) -> Verified:
    tails = tuple(message_tail(body, 1_600_000_000_000) for body in bodies)
    spot = Spot(topic_of(stream), who.author, who.card.device, number, prev)
    return sign_unit(who.device, spot, tails)


PAY_ALICE, PAY_MALLORY = signed(EVE, 0, b"pay alice"), signed(EVE, 0, b"pay mallory")


class Scene:
    """A village, and a liar with a link to each of two of its nodes."""

    def __init__(self, peers: int = 5) -> None:
        self.village = village = Village(peers=peers)
        self.readers = {name: village.subscribe(name) for name in village.names if name[0] == "p"}
        village.run(10)
        self.liars: dict[str, Attacker] = {}

    def say(self, victim: str, *messages: Message, name: str | None = None) -> None:
        name = name or f"liar of {victim}"
        attacker = self.liars[name] = Attacker(self.village.peer(victim), lambda _: messages)
        peer = self.village.add(name, attacker).peer
        self.village.network.ask(peer, Connect(Contact(self.village.peer(victim), (f"tls://{victim}:1",))))

    def data(self, verified: Verified) -> Data:
        return Data(verified.unit, 1, 0, int(self.village.network.now * 1e6), EVE.card)

    def forked(self, name: str) -> list[Forked]:
        return [item for item in self.village.items[name, self.readers[name]] if isinstance(item, Forked)]

    def read(self, name: str) -> list[bytes]:
        items = self.village.items[name, self.readers[name]]
        return [item.body for item in items if isinstance(item, Event)]

    def cut(self) -> dict[str, list[str]]:
        return {name: liar.cut for name, liar in self.liars.items() if liar.cut}


TOLD = Forked(TOPIC, EVE.author, EVE.card.device, 0)


def test_who_says_two_things_to_two_people_is_found_out_by_all() -> None:
    scene = Scene()
    scene.say("p0", scene.data(PAY_ALICE))
    scene.say("p4", scene.data(PAY_MALLORY))
    scene.village.run(10)
    versions = {name: scene.read(name) for name in scene.readers}
    assert sorted({each for read in versions.values() for each in read}) == [b"pay alice", b"pay mallory"]
    assert all(len(read) == 1 for read in versions.values())
    assert {name: scene.forked(name) for name in scene.readers} == {name: [TOLD] for name in scene.readers}
    assert scene.cut() == {}, "they only passed on what somebody signed"
    # The proof is on record once at each node.
    records = [
        (node, record.seq)
        for node, record in scene.village.notes.records
        if (record.kind, record.reason) == (Kind.REJECTED, Reason.EQUIVOCATION) and "two" in str(record.note)
    ]
    names = [scene.village.name(node) for node, _ in records]
    assert sorted(set(names)) == sorted(names)
    assert {number for _, number in records} == {0}


def test_the_proof_outlives_a_restart_and_is_told_once() -> None:
    scene = Scene()
    scene.say("p0", scene.data(PAY_ALICE))
    scene.say("p4", scene.data(PAY_MALLORY))
    scene.village.run(10)
    scene.village.crash("p1")
    scene.village.run(1)
    scene.village.restart("p1")
    again = scene.village.subscribe("p1")
    scene.village.run(10)
    scene.say("p1", Fork(PAY_ALICE.unit, PAY_MALLORY.unit, EVE.card), scene.data(PAY_MALLORY), name="again")
    scene.village.run(5)
    assert [item for item in scene.village.items["p1", again] if isinstance(item, Forked)] == []


def test_who_comes_later_is_shown_the_proof() -> None:
    village = Village(peers=6)
    readers = {name: village.subscribe(name) for name in ("p0", "p1", "p2", "p3")}
    village.run(10)
    scene = Scene.__new__(Scene)
    scene.village, scene.readers, scene.liars = village, readers, {}
    scene.say("p0", scene.data(PAY_ALICE))
    scene.say("p3", scene.data(PAY_MALLORY))
    village.run(10)
    scene.readers["p5"] = village.subscribe("p5")
    village.run(10)
    assert scene.forked("p5") == [TOLD]


def test_a_false_proof_is_blamed_on_who_sends_it() -> None:
    other = signed(seeded_identity(7, "ben", 1_600_000_000.0), 0, b"x")
    unsigned = replace(PAY_MALLORY.unit, sig=type(PAY_MALLORY.unit.sig)(bytes(64)))
    next_one = signed(EVE, 1, b"next", prev=PAY_ALICE.head)
    false = [
        Fork(PAY_ALICE.unit, PAY_ALICE.unit, EVE.card),
        Fork(PAY_ALICE.unit, next_one.unit, EVE.card),
        Fork(PAY_ALICE.unit, unsigned, EVE.card),
        Fork(PAY_ALICE.unit, other.unit, EVE.card),
    ]
    for number, fork in enumerate(false):
        scene = Scene(peers=2)
        scene.say("p0", *[fork] * 20, name=f"slanderer {number}")
        scene.village.run(5)
        assert scene.forked("p0") == scene.forked("p1") == []
        # A device that is not known here may be known elsewhere.
        assert scene.cut() == ({f"slanderer {number}": ["forging"]} if number < 3 else {}), number


def test_a_forged_other_version_is_no_fork_and_costs_its_sender() -> None:
    forged = replace(PAY_MALLORY.unit, sig=type(PAY_MALLORY.unit.sig)(bytes(63) + b"\1"))
    scene = Scene(peers=2)
    lie = Data(forged, 1, 0, int(scene.village.network.now * 1e6), EVE.card)
    scene.say("p0", scene.data(PAY_ALICE), *[lie] * 20)
    scene.village.run(5)
    assert scene.forked("p0") == []
    assert scene.read("p0") == scene.read("p1") == [b"pay alice"]
    assert scene.cut() == {"liar of p0": ["forging"]}


FIRST = signed(EVE, 5, b"a", b"b", b"c")
CASES: list[tuple[Verified, Verified, int | None]] = [
    (PAY_ALICE, PAY_MALLORY, 0),
    (PAY_ALICE, PAY_ALICE, None),
    (FIRST, signed(EVE, 5, b"a", b"b", b"d"), 7),
    (FIRST, signed(EVE, 5, b"a"), None),
    (FIRST, signed(EVE, 6, b"x", prev=FIRST.events[0].id), 6),
    (FIRST, signed(EVE, 6, b"b", b"c", b"d", prev=FIRST.events[0].id), None),
    (FIRST, signed(EVE, 8, b"d", prev=FIRST.head), None),
    (FIRST, signed(EVE, 8, b"d", prev=FIRST.events[0].id), 7),
    (FIRST, signed(EVE, 9, b"e", prev=FIRST.head), None),
]


@pytest.mark.parametrize(("one", "other", "number"), CASES)
def test_two_units_differ_where_they_say_different_things(
    one: Verified, other: Verified, number: int | None
) -> None:
    assert differing_number(one, other) == differing_number(other, one) == number
    if number is None:
        with pytest.raises(InvalidEvent):
            told_fork(one, other)
    else:
        assert told_fork(one, other) == Forked(TOPIC, EVE.author, EVE.card.device, number)


def test_units_of_different_chains_or_topics_are_no_fork() -> None:
    ben = seeded_identity(7, "ben", 1_600_000_000.0)
    for other in (signed(ben, 0, b"pay mallory"), signed(EVE, 0, b"pay mallory", stream="sport")):
        with pytest.raises(InvalidEvent, match="different chains"):
            told_fork(PAY_ALICE, other)


def chain(who: Identity, count: int, body: Callable[[int], bytes]) -> list[Verified]:
    units: list[Verified] = []
    for number in range(count):
        units.append(signed(who, number, body(number), prev=units[-1].head if units else None))
    return units


def test_only_so_many_recent_units_are_remembered_and_so_many_bytes() -> None:
    recent = RecentUnits()
    units = chain(EVE, 300, lambda number: b"%d" % number)
    for unit in units:
        recent.add(unit)
    place = EVE.author, EVE.card.device
    held = [number for number in range(300) if recent.find(*place, number) is not None]
    assert held == list(range(44, 300))
    assert recent.find_fork(signed(EVE, 299, b"other", prev=units[298].head)) is units[299]
    assert recent.find_fork(signed(EVE, 10, b"other", prev=units[9].head)) is None
    large = RecentUnits()
    for unit in chain(EVE, 10, lambda number: bytes(100_000)):
        large.add(unit)
    assert [number for number in range(10) if large.find(*place, number) is not None] == [8, 9]


def test_the_ends_of_a_burst_are_found() -> None:
    recent = RecentUnits()
    recent.add(FIRST)
    place = EVE.author, EVE.card.device
    assert [number for number in range(4, 9) if recent.find(*place, number) is FIRST] == [5, 7]
    assert recent.find_fork(signed(EVE, 8, b"d", prev=FIRST.events[0].id)) is FIRST


def test_proofs_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks_module, "MAX_FORKS", 1)
    cells = MemoryStore().cells
    kept, fork = Forks(cells), Fork(PAY_ALICE.unit, PAY_MALLORY.unit, EVE.card)
    assert kept.keep(fork)
    other = [signed(EVE, 0, body, stream="sport").unit for body in (b"x", b"y")]
    assert not kept.keep(Fork(other[0], other[1], EVE.card))
    assert kept.knows(topic_of("sport"), EVE.author, EVE.card.device), "it is told once all the same"
    again = Forks(cells)
    assert again.knows(TOPIC, EVE.author, EVE.card.device)
    assert not again.knows(topic_of("sport"), EVE.author, EVE.card.device)
    assert list(again.of_topic(TOPIC)) == [fork]
    assert list(again.of_topic(topic_of("sport"))) == []


def test_a_proof_that_is_too_large_is_told_here_alone() -> None:
    scene = Scene()
    body = bytes(FORK_BYTES * 3 // 4)
    scene.say("p0", scene.data(signed(EVE, 0, body + b"1")))
    scene.say("p4", scene.data(signed(EVE, 0, body + b"2")))
    scene.village.run(10)
    heard = [message for messages in scene.village.heard.values() for _, message in messages]
    assert not any(isinstance(message, Fork) for message in heard)
    assert any(scene.forked(name) for name in scene.readers)
    assert all(len(scene.forked(name)) <= 1 for name in scene.readers), "each is told once"
    unit = signed(EVE, 0, body + b"1").unit
    scene.say("p2", Fork(unit, signed(EVE, 0, body + b"2").unit, EVE.card), name="bearer")
    scene.village.run(5)
    assert not scene.cut()
