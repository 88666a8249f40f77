"""Hot attributes are split, and nothing is lost for it."""

from __future__ import annotations

import pytest
from tests.content.chains import nearest_first
from tests.content.test_filter_backup import OURS, ROUTE, Parts, told

from linnet.content.attribute_keys import MOST_PARTS, Locate, Located, attribute_key, distance, part_name
from linnet.content.commands import Outcome
from linnet.content.config import ContentConfig
from linnet.content.hot_attributes import HotAttributes
from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox
from linnet.sim.content.world import ContentWorld


class Busy:
    """A network in which some publish once a second, and who should have had what."""

    def __init__(self, **more: object) -> None:
        config = ContentConfig(**more)  # type: ignore[arg-type] # its fields
        self.world = ContentWorld(24, 4, config)
        self.readers = self.world.names[:8]
        self.writers = self.world.names[14:22]
        self.expected: dict[str, list[bytes]] = {}
        self.requests: list[int] = []
        self.world.run(0.5)
        for name in self.readers:
            self.world.subscribe(name, "stock")
        self.world.run(5.0)

    def publish(self, seconds: int) -> None:
        for _ in range(seconds):
            for name in self.writers:
                if self.world.network.is_up(self.world.identities[name].peer):
                    body = f"{len(self.requests)}".encode()
                    self.requests.append(self.world.publish(name, "stock", body))
                    for reader in self.readers:
                        self.expected.setdefault(reader, []).append(body)
            self.world.run(1.0)

    def loads(self) -> list[int]:
        return sorted((scout.arrivals for scout in self.world.scouts.values()), reverse=True)

    def missing(self) -> int:
        handed = {name: self.world.bodies(name) for name in self.readers}
        return sum(body not in handed[name] for name in self.readers for body in self.expected.get(name, ()))

    def wrongly_told(self) -> int:
        outcomes = [self.world.network.answers.get(request) for request in self.requests]
        return sum(
            not isinstance(each, Outcome) or any(fate.missed or fate.reason for fate in each.fates)
            for each in outcomes
        )


def test_events_of_a_hot_attribute_are_spread_and_none_is_missing_or_told_wrongly() -> None:
    whole, split = Busy(hot=0.0), Busy(hot=2.0)
    for busy in (whole, split):
        busy.publish(30)
        busy.world.run(20.0)
        assert (busy.missing(), busy.wrongly_told()) == (0, 0)
    assert whole.loads()[:2] == [240, 0]
    assert split.loads()[0] < 150
    assert sum(count > 0 for count in split.loads()) >= 4


def test_who_subscribes_while_it_is_split_misses_nothing_that_is_said_after_it_stands() -> None:
    busy = Busy(hot=2.0)
    busy.publish(15)
    late = busy.world.names[10]
    busy.world.subscribe(late, "stock")
    busy.world.run(1.0)
    busy.readers.append(late)
    busy.publish(15)
    busy.world.run(20.0)
    assert busy.missing() == 0


@pytest.mark.parametrize("attribute", ["stock", "stock/1"])
def test_when_the_rendezvous_or_who_holds_a_part_crashes_nothing_is_lost(attribute: str) -> None:
    busy = Busy(hot=2.0)
    busy.publish(20)
    nearest = nearest_first(busy.world, attribute)[0]
    busy.readers = [name for name in busy.readers if name != nearest]
    busy.world.crash(nearest)
    busy.publish(10)
    busy.world.run(150.0)
    assert busy.missing() == 0


def test_what_has_cooled_down_is_whole_again() -> None:
    busy = Busy(hot=2.0, refresh=60.0, confirmed=30.0)
    busy.publish(20)
    busy.world.run(130.0)
    before = busy.loads()
    busy.publish(2)
    busy.world.run(10.0)
    assert busy.missing() == 0
    assert sum(now != then for now, then in zip(busy.loads(), before, strict=True)) == 1


def test_each_split_looks_for_as_many_nodes_as_it_adds_parts_and_counts_when_all_are_found() -> None:
    out = Outbox()
    hot = HotAttributes(OURS, ContentConfig(hot=1.0), Parts().backups, out)
    expected = 1
    for now in range(0, 100, 10):
        assert hot.parts("stock") == expected
        for _ in range(10):
            hot.count_arrival("stock", float(now))
        assert out.take_notices() == [], "as many as are borne"
        hot.count_arrival("stock", float(now))
        added = range(expected, min(2 * expected, MOST_PARTS))
        keys = [attribute_key(part_name("stock", part)) for part in added]
        assert out.take_notices() == [Locate(key) for key in keys]
        for key in keys:
            assert hot.parts("stock") == expected
            hot.handle_nodes_found(Located(key, ()))
        expected = min(2 * expected, MOST_PARTS)
    assert expected == MOST_PARTS
    hot.unsplit("stock")
    assert hot.parts("stock") == 1


def split_once(ours: PeerId = OURS) -> tuple[HotAttributes, Parts]:
    """An attribute in two parts, for which the second node is still looked for."""
    parts = Parts()
    parts.add(ROUTE, "stock/apple")
    hot = HotAttributes(ours, ContentConfig(hot=1.0), parts.backups, parts.out)
    for _ in range(11):
        hot.count_arrival("stock", 0.0)
    parts.out.clear()
    return hot, parts


def test_a_part_is_held_by_who_is_closer_to_it_than_we_are_and_counts_when_it_has_all_filters() -> None:
    key = attribute_key("stock/1")
    some = (PeerId(bytes([number]) * 32) for number in range(20, 23))
    closer, ours, farther = sorted(some, key=lambda peer: distance(peer, key))
    for found, is_closer in ((closer, True), (farther, False)):
        hot, parts = split_once(ours)
        parts.reach.handle_link_up(found)
        hot.handle_nodes_found(Located(key, (Contact(found),)))
        asked = [(peer, message.attribute) for peer, message in told(parts.out.take())]
        assert asked == ([(found, "stock/1")] if is_closer else [])
        assert hot.parts("stock") == (1 if is_closer else 2)


@pytest.mark.parametrize(("events", "parts"), [(2, 1), (3, 2)])
def test_a_split_ends_when_a_quarter_of_what_is_borne_does_not_come_any_more(events: int, parts: int) -> None:
    hot, _ = split_once()
    hot.handle_nodes_found(Located(attribute_key("stock/1"), ()))
    for _ in range(events):
        hot.count_arrival("stock", 5.0)
    hot.begin_period(6.0)
    assert hot.parts("stock") == parts
