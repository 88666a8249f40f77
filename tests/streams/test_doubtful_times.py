"""Times that no clock can have told: shown with a mark, and nothing is decided by them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.streams.attackers import Attacker
from tests.streams.stage import context_of
from tests.streams.village import STREAM, Village

from linnet.core.ids import Contact, EventId
from linnet.core.limits import LARGEST_COUNT
from linnet.delivery.items import CaughtUp
from linnet.delivery.messages import Data
from linnet.delivery.receipts import Fate
from linnet.event.event import Event, Spot, Verified
from linnet.event.signing import message_tail, sign_unit
from linnet.identity.text import Sort, to_text
from linnet.peer.config import Identity
from linnet.peer.interface import Connect
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity
from linnet.streams.commands import Declare, Policy, Publish, Published
from linnet.streams.config import StorageRule
from linnet.streams.stream import Stream
from linnet.streams.stream_names import topic_of

EVE = seeded_identity(7, "eve", START)
HOUR, LEEWAY = 3600, 300


def said(number: int, at: float, body: bytes, prev: EventId | None = None, who: Identity = EVE) -> Verified:
    spot = Spot(topic_of(STREAM), who.author, who.card.device, number, prev)
    return sign_unit(who.device, spot, (message_tail(body, min(LARGEST_COUNT, int(at * 1000))),))


def chain(*times: float) -> list[Verified]:
    """A chain of Eve's with these times; the bodies are the numbers."""
    units: list[Verified] = []
    for number, at in enumerate(times):
        units.append(said(number, at, b"%d" % number, units[-1].head if units else None))
    return units


class Scene:
    """A village, and Eve with a link to p0, through which all others hear her."""

    def __init__(self, rules: tuple[StorageRule, ...] = (StorageRule(STREAM),), **clocks: float) -> None:
        self.village = Village(peers=6, rules=rules, clocks=clocks)
        self.village.run(1)

    def say(self, units: Sequence[Verified], name: str = "evil") -> None:
        lines = [Data(unit.unit, 1, 0, int(self.village.network.now * 1e6), EVE.card) for unit in units]
        peer = self.village.add(name, Attacker(self.village.peer("p0"), lambda _: lines)).peer
        self.village.network.ask(peer, Connect(Contact(self.village.peer("p0"), ("tls://p0:1",))))
        self.village.run(10)

    def marks(self, name: str, subscription: int) -> list[tuple[bytes, bool]]:
        items = self.village.items[name, subscription]
        return [(item.body, item.doubtful) for item in items if isinstance(item, Event)]


def test_each_way_to_subscribe_shows_a_doubtful_time_with_its_mark() -> None:
    scene = Scene()
    village = scene.village
    readers = {
        "p0": village.subscribe("p0"),
        "p1": village.subscribe("p1"),
        "p2": village.subscribe("p2", ordered=False),
        "p3": village.subscribe("p3", name="kept"),
    }
    village.run(10)
    now = village.network.now
    scene.say(chain(now, 2.0**63, now + LEEWAY - 30, now + LEEWAY + 90, 0.0))
    expected = [(b"0", False), (b"1", True), (b"2", False), (b"3", True), (b"4", False)]
    for name, number in readers.items():
        assert scene.marks(name, number) == expected, name
    assert scene.marks("p4", village.subscribe("p4", since=0.0, wait=20.0)) == expected
    # A durable one that wants everything has each chain sent again.
    assert scene.marks("p5", village.subscribe("p5", since=0.0, name="all", wait=20.0)) == expected


def test_a_mark_stays_when_the_time_has_come() -> None:
    """What was ahead when it came is as doubtful later, to whoever reads it from the log."""
    scene = Scene()
    village = scene.village
    village.subscribe("p0")
    first = village.subscribe("p3", name="kept")
    village.run(10)
    scene.say(chain(village.network.now + HOUR))
    assert scene.marks("p3", first) == [(b"0", True)]
    village.run(2 * HOUR)
    again = village.subscribe("p3", name="other", since=0.0, wait=20.0)
    assert scene.marks("p3", again) == [(b"0", True)]


@pytest.mark.parametrize(("wrong", "others"), [(-3 * HOUR, 0.0), (0.0, 3 * HOUR)])
def test_where_our_clock_is_the_wrong_one_nobody_is_marked(wrong: float, others: float) -> None:
    """p4 alone is three hours behind; its peers tell it the time."""
    ahead = dict.fromkeys(("t0", "s0", "p0", "p1", "p2", "p3"), others)
    village = Village(peers=5, clocks={**ahead, "p4": wrong})
    reader = village.subscribe("p4")
    for name in ("p0", "p1", "p2", "p3"):
        village.subscribe(name)
    village.run(120)
    assert len(village.status("p4").clocks) >= 3
    village.publish("p1", b"right", wait=10.0)
    items = [item for item in village.items["p4", reader] if isinstance(item, Event)]
    assert [(item.body, item.doubtful) for item in items] == [(b"right", False)]


def test_one_clock_that_is_ahead_is_marked_by_all_others() -> None:
    village = Village(peers=5, clocks={"p4": 3 * HOUR})
    readers = {name: village.subscribe(name) for name in ("p0", "p1", "p2", "p3", "p4")}
    village.run(120)
    village.publish("p4", b"early", wait=10.0)
    marks = {
        name: [item.doubtful for item in village.items[name, number] if isinstance(item, Event)]
        for name, number in readers.items()
    }
    assert marks == {name: [name != "p4"] for name in readers}


def test_storage_keeps_each_event_for_as_long_as_any_other_whatever_its_time() -> None:
    """Neither longer for a time to come, nor shorter for one that is long past."""
    scene = Scene(rules=(StorageRule(STREAM, retention=600.0),))
    village = scene.village
    village.subscribe("p0")
    village.run(10)
    now = village.network.now
    scene.say(chain(2.0**63, 0.0, now))
    village.run(300)
    held = village.subscribe("p1", since=0.0, wait=20.0)
    assert [body for body, _ in scene.marks("p1", held)] == [b"0", b"1", b"2"]
    village.run(900)
    gone = village.subscribe("p2", since=0.0, wait=20.0)
    assert scene.marks("p2", gone) == []
    caught = [item for item in village.items["p2", gone] if isinstance(item, CaughtUp)]
    assert [(each.begins_at, each.evicted) for each in caught] == [(None, True)]


def test_history_of_the_last_minutes_is_what_came_in_them_whatever_it_claims() -> None:
    scene = Scene()
    village = scene.village
    village.subscribe("p0")
    village.run(10)
    scene.say(chain(2.0**63))
    village.run(600)
    begin = village.network.now
    later = [said(1, 0.0, b"1", chain(2.0**63)[0].head)]
    scene.say(later, "evil again")
    reader = village.subscribe("p1", since=begin, wait=20.0)
    assert scene.marks("p1", reader) == [(b"1", False)]


def test_history_comes_in_the_order_of_its_chains_and_of_storage() -> None:
    scene = Scene()
    village = scene.village
    village.subscribe("p0")
    village.run(10)
    village.publish("p1", b"before", wait=5.0)
    scene.say(chain(2.0**63, 0.0))
    village.publish("p1", b"behind", wait=5.0)
    reader = village.subscribe("p2", since=0.0, wait=20.0)
    assert [body for body, _ in scene.marks("p2", reader)] == [b"before", b"0", b"1", b"behind"]


def test_a_policy_of_a_clock_that_was_ahead_is_replaced_once_the_clock_is_right() -> None:
    village = Village(peers=2, clocks={"p0": 3 * HOUR})
    name = f"{to_text(Sort.PERSON, village.identity['p0'].author)}/log"
    village.subscribe("p1", name)
    village.run(10)
    for ahead, degree in ((3 * HOUR, 7), (0.0, 5)):
        village.clocks["p0"] = ahead
        village.crash("p0")
        village.restart("p0")
        village.run(10)
        declared = village.ask("p0", Declare(name, Policy(degree=degree)), 10.0)
        assert isinstance(declared, Published)
        for node in ("p0", "p1"):
            assert policy_at(village, node, name).degree == degree, node


def policy_at(village: Village, node: str, name: str) -> Policy:
    machine = village.network.machine(village.peer(node)).machine  # type: ignore[attr-defined]
    stream = machine.parts.streams._memberships.get(topic_of(name))
    assert isinstance(stream, Stream)
    return stream.governance.policy


def test_receipts_of_a_clock_that_was_ahead_do_not_silence_it_once_it_is_right() -> None:
    village = Village(peers=2, clocks={"s0": 3 * HOUR})
    for name in ("p0", "p1"):
        village.subscribe(name)
    village.run(10)
    for ahead in (3 * HOUR, 0.0):
        village.clocks["s0"] = ahead
        village.crash("s0")
        village.restart("s0")
        village.run(20)
        published = village.ask("p0", Publish(STREAM, (b"%d" % ahead,), confirm=10.0), 20.0)
        assert isinstance(published, Published)
        assert [each.fate for each in published.fates if each.storage] == [Fate.DELIVERED], ahead


def test_the_clocks_of_peers_are_looked_at_only_for_times_ahead_of_ours() -> None:
    """Each unit is judged, and to find the middle one of many clocks takes time."""
    context, looks = context_of(), []

    def behind() -> float:
        looks.append(1)
        return 2.0 * HOUR

    context.clock_behind = behind
    early, late, far = (said(0, START + ahead, b"") for ahead in (0.0, HOUR, 3 * HOUR))
    assert context.doubt(early, START) is early
    assert looks == []
    marks = [context.doubt(unit, START).events[0].doubtful for unit in (late, far)]
    assert (marks, len(looks)) == ([False, True], 2)
