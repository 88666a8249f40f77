"""Flooding: to everyone but the one it came from, cards once, replays counted."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.voices import TOPIC, Voice

from linnet.core.effects import Send
from linnet.core.ids import PeerId
from linnet.core.limits import LARGEST_COUNT
from linnet.delivery.flood import Flood, unit_bytes
from linnet.delivery.messages import MAX_HOPS, Data
from linnet.event.event import Verified
from linnet.identity.cards import Card, issue_card
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.peer.messages import CODEC
from linnet.trace.records import Kind, Record

PEERS = [PeerId(bytes([n]) * 32) for n in range(5)]
NOW = 1_700_000_000.5
NOW_US = int(NOW * 1_000_000)


def flood_of(count: int) -> Flood:
    flood = Flood(TOPIC)
    for peer in PEERS[:count]:
        flood.up(peer)
    return flood


def spread(
    flood: Flood,
    verified: Verified,
    card: Card,
    sources: tuple[PeerId, ...],
    hops: int,
    age_us: int,
    now: float,
) -> list[Any]:
    out = Outbox()
    flood.spread(verified, card, sources, hops, age_us, now, out)
    return [*out.take()]


def sent(peer: PeerId, unit: Verified, data: Data) -> list[Any]:
    size = unit_bytes(unit.unit)
    place = unit.unit
    record = Record(
        Kind.SENT, TOPIC, unit.head, place.device, place.seq, len(place.tails), peer, data.hops, size
    )
    return [Send(peer, data), record]


def test_a_publisher_sends_d_copies() -> None:
    ann, flood = Voice(), flood_of(4)
    unit = ann.say(b"x")
    data = Data(unit.unit, 1, 0, NOW_US, ann.identity.card)
    effects = spread(flood, unit, ann.identity.card, (), 1, 0, NOW)
    assert effects == [effect for peer in PEERS[:4] for effect in sent(peer, unit, data)]


def test_a_forwarder_sends_d_less_one_and_never_back() -> None:
    ann, flood = Voice(), flood_of(4)
    unit = ann.say(b"x")
    data = Data(unit.unit, 3, 40, NOW_US, ann.identity.card)
    effects = spread(flood, unit, ann.identity.card, (PEERS[2],), 3, 40, NOW)
    assert effects == [effect for peer in (PEERS[0], PEERS[1], PEERS[3]) for effect in sent(peer, unit, data)]


def cards_sent(effects: list[Any]) -> dict[PeerId, bool]:
    return {e.peer: e.message.card is not None for e in effects if isinstance(e, Send)}


def test_a_card_goes_once_to_each_neighbour() -> None:
    ann, ben, flood = Voice("ann"), Voice("ben"), flood_of(2)
    a, b = PEERS[:2]
    assert cards_sent(spread(flood, ann.say(), ann.identity.card, (a,), 2, 0, NOW)) == {b: True}
    assert cards_sent(spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW)) == {a: True, b: False}
    assert cards_sent(spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW)) == {a: False, b: False}
    assert cards_sent(spread(flood, ben.say(), ben.identity.card, (), 1, 0, NOW)) == {a: True, b: True}
    flood.down(a)
    flood.up(a)
    assert cards_sent(spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW)) == {a: True, b: False}


def test_a_renewed_card_goes_out_again() -> None:
    ann, flood = Voice(), flood_of(1)
    spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW)
    old = ann.identity.card
    renewed = issue_card(SigningKey(b"p" * 32), old.device_key, old.not_before, old.not_after + 1)
    assert cards_sent(spread(flood, ann.say(), renewed, (), 1, 0, NOW)) == {PEERS[0]: True}
    assert cards_sent(spread(flood, ann.say(), renewed, (), 1, 0, NOW)) == {PEERS[0]: False}


def test_replayed_units_are_counted_beyond_those_that_there_are() -> None:
    flood = flood_of(2)
    flood.distinct = 10
    late = PEERS[2]
    flood.up(late)
    assert flood.heard(PEERS[0]) == -9
    assert flood.heard(late) == -19
    flood.distinct += 1
    for _ in range(20):
        flood.heard(late)
    assert flood.heard(late) == 1


def test_a_stranger_that_replays_is_counted_as_well() -> None:
    flood = flood_of(0)
    counts = [flood.heard(PEERS[0]) for _ in range(3)]
    assert counts == [1, 2, 3]
    flood.unlinked(PEERS[0])
    assert flood.heard(PEERS[0]) == 1


def test_it_stalls_only_while_all_neighbours_are_congested() -> None:
    flood = flood_of(2)
    assert not Flood(TOPIC).stalled
    assert not flood.stalled
    flood.neighbors[PEERS[0]].congested = True
    assert not flood.stalled
    flood.neighbors[PEERS[1]].congested = True
    assert flood.stalled
    flood.up(PEERS[2])
    assert not flood.stalled


def test_a_routing_is_asked_with_the_sources_and_all_neighbours_and_is_obeyed() -> None:
    ann, flood = Voice(), flood_of(4)
    asked: list[tuple[tuple[PeerId, ...], tuple[PeerId, ...]]] = []

    def routing(sources: tuple[PeerId, ...], up: Sequence[PeerId]) -> Sequence[PeerId]:
        asked.append((sources, tuple(up)))
        return [PEERS[3], PEERS[1]]

    flood.route(routing)
    unit = ann.say(b"x")
    data = Data(unit.unit, 3, 40, NOW_US, ann.identity.card)
    effects = spread(flood, unit, ann.identity.card, (PEERS[2],), 3, 40, NOW)
    assert effects == [effect for peer in (PEERS[3], PEERS[1]) for effect in sent(peer, unit, data)]
    assert asked == [((PEERS[2],), tuple(PEERS[:4]))]


def test_a_routing_never_sends_back_nor_twice() -> None:
    ann, flood = Voice(), flood_of(3)
    flood.route(lambda sources, up: [*up, *up])
    assert list(cards_sent(spread(flood, ann.say(), ann.identity.card, (PEERS[0],), 2, 0, NOW))) == PEERS[1:3]


def test_a_routing_that_names_nobody_sends_nothing_and_without_one_all_is_as_before() -> None:
    ann, flood = Voice(), flood_of(2)
    flood.route(lambda sources, up: ())
    assert spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW) == []
    flood.route(None)
    assert list(cards_sent(spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW))) == PEERS[:2]


def test_a_card_goes_with_the_first_unit_that_a_routing_sends_to_a_neighbour() -> None:
    ann, flood = Voice(), flood_of(3)
    turn = iter([PEERS[:1], PEERS[:2], PEERS[:3]])
    flood.route(lambda sources, up: next(turn))
    a, b, c = PEERS[:3]
    assert cards_sent(spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW)) == {a: True}
    assert cards_sent(spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW)) == {a: False, b: True}
    assert cards_sent(spread(flood, ann.say(), ann.identity.card, (), 1, 0, NOW)) == {
        a: False,
        b: False,
        c: True,
    }


def test_with_a_routing_too_it_stalls_only_while_all_neighbours_are_congested() -> None:
    flood = flood_of(2)
    flood.route(lambda sources, up: up[:1])
    flood.neighbors[PEERS[0]].congested = True
    assert not flood.stalled
    flood.neighbors[PEERS[1]].congested = True
    assert flood.stalled


def test_members_of_a_ring_are_never_taken_for_replaying() -> None:
    """Each of eight sends a unit to another once at most, so nobody hears more units than there are."""
    names = [PeerId(bytes([n]) * 32) for n in range(8)]
    floods = {name: Flood(TOPIC) for name in names}
    rng = Random(1)
    for at, name in enumerate(names):
        floods[name].route(lambda sources, up: rng.sample(list(up), 3))
        for step in (1, 2, 4, 6, 7):
            floods[name].up(names[(at + step) % 8])
    ann, beyond = Voice(), -1_000
    for round_ in range(40):
        unit, have = ann.say(b"x"), {names[round_ % 8]}
        floods[names[round_ % 8]].distinct += 1
        waiting: list[tuple[PeerId, tuple[PeerId, ...]]] = [(names[round_ % 8], ())]
        for name, sources in waiting:
            for effect in spread(floods[name], unit, ann.identity.card, sources, 1, 0, NOW):
                if isinstance(effect, Send):
                    other = effect.peer
                    heard = floods[other].heard(name)
                    if other not in have:
                        have.add(other)
                        floods[other].distinct += 1
                        waiting.append((other, (name,)))
                        heard -= 1
                    beyond = max(beyond, heard)
    assert beyond <= 0


@given(
    st.integers(min_value=0, max_value=2 * MAX_HOPS), st.integers(min_value=0, max_value=2 * LARGEST_COUNT)
)
def test_whatever_others_say_of_hops_and_age_what_we_pass_on_can_be_read(hops: int, age_us: int) -> None:
    """Otherwise one lie would make all who pass it on look like offenders."""
    ann, flood = Voice(), flood_of(1)
    unit = ann.say(b"x")
    effect = spread(flood, unit, ann.identity.card, (), hops, age_us, NOW)[0]
    assert isinstance(effect, Send)
    assert CODEC.decode(CODEC.encode(effect.message)) == effect.message


def test_who_takes_part_through_us_is_sent_everything_whatever_the_routing() -> None:
    ann, flood = Voice(), flood_of(4)
    asked: list[tuple[PeerId, ...]] = []

    def routing(sources: Sequence[PeerId], up: Sequence[PeerId]) -> Sequence[PeerId]:
        asked.append(tuple(up))
        return [PEERS[1]]

    flood.route(routing)
    flood.neighbors[PEERS[3]].is_served = True
    effects = spread(flood, ann.say(b"x"), ann.identity.card, (PEERS[0],), 1, 0, NOW)
    assert [effect.peer for effect in effects if isinstance(effect, Send)] == [PEERS[1], PEERS[3]]
    assert asked == [(PEERS[0], PEERS[1], PEERS[2])]


def test_alone_is_who_has_nobody_but_those_it_serves() -> None:
    flood = flood_of(2)
    assert not flood.is_alone
    flood.neighbors[PEERS[0]].is_served = True
    assert not flood.is_alone
    flood.down(PEERS[1])
    assert flood.is_alone
    assert flood_of(0).is_alone
