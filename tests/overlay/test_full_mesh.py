"""The mesh: who is held, who makes room, and that dead addresses do not starve live ones."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driven import Driven
from tests.overlay.harness import TOPIC, hints, peer_id

from linnet.core.effects import Hold, Release
from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Outbox
from linnet.overlay.full_mesh import SPARE, FullMesh

OURS = peer_id("ours")
PURPOSE = TOPIC.hex()


def contact(number: int) -> Contact:
    return Contact(peer_id(number), hints(peer_id(number)))


def contacts(*numbers: int) -> list[Contact]:
    return [contact(number) for number in numbers]


def hold(peer: PeerId) -> Hold:
    return Hold(peer, hints(peer), PURPOSE)


def mesh(limit: int, seed: int = 1) -> Driven:
    return Driven(lambda out: FullMesh(PURPOSE, limit, OURS, Random(seed), out))


def held_after(effects: list[Hold | Release], held: dict[PeerId, None]) -> None:
    for effect in effects:
        match effect:
            case Hold(peer):
                held[peer] = None
            case Release(peer):
                del held[peer]


def test_every_known_device_is_held_up_to_the_limit() -> None:
    one = mesh(3)
    effects = one.add_contacts([*contacts(0, 1, 2), Contact(OURS, ("tls://us:1",))])
    assert sorted(effect.peer for effect in effects) == sorted(peer_id(number) for number in range(3))
    assert one.add_contacts(contacts(0, 1, 2)) == []
    for number in range(3):
        assert one.handle_link_up(peer_id(number)) == []
    assert len(one.linked_peers) == 3


def test_beyond_the_limit_a_random_subset_is_held_and_it_stays() -> None:
    one = mesh(4)
    one.add_contacts(contacts(*range(50)))
    assert len(one.held_peers) == 4 + SPARE
    first, spare = one.held_peers[:4], one.held_peers[4:]
    for peer in first[:3]:
        assert one.handle_link_up(peer) == []
    assert one.handle_link_up(first[3]) == [Release(peer, PURPOSE) for peer in spare]
    assert one.held_peers == first
    assert one.add_contacts(contacts(*range(50, 80))) == []
    other = mesh(4, seed=2)
    other.add_contacts(contacts(*range(50)))
    assert other.held_peers[:4] != first
    again = mesh(4)
    again.add_contacts(contacts(*range(50)))
    assert again.held_peers[:4] == first


def test_who_goes_stays_held_while_others_are_tried_and_may_come_back() -> None:
    one = mesh(2)
    one.add_contacts(contacts(*range(20)))
    a, b = one.held_peers[:2]
    one.handle_link_up(a)
    one.handle_link_up(b)
    tried = one.handle_link_down(a)
    assert len(tried) == 2 + SPARE - 2
    assert all(isinstance(effect, Hold) for effect in tried)
    assert one.handle_link_up(a) == [Release(effect.peer, PURPOSE) for effect in tried]
    assert one.held_peers == (a, b)


def test_who_does_not_answer_makes_room_for_the_next() -> None:
    one = mesh(1)
    one.add_contacts(contacts(*range(10)))
    dead = one.held_peers[0]
    effects = one.handle_dial_failed(dead)
    assert effects[0] == Release(dead, PURPOSE)
    assert len(effects) == 2
    assert isinstance(effects[1], Hold)
    assert effects[1].peer != dead


def test_with_nobody_waiting_the_pauses_of_the_links_are_enough() -> None:
    one = mesh(4)
    one.add_contacts(contacts(0, 1))
    for _ in range(20):
        assert one.handle_dial_failed(peer_id(0)) == []
    assert one.held_peers == tuple(effect.peer for effect in mesh(4).add_contacts(contacts(0, 1)))


def test_many_dead_addresses_do_not_starve_a_live_one_and_cost_less_and_less() -> None:
    """One of many is alive: it is found in the first round; later rounds come after more failures."""
    one = mesh(8)
    alive = peer_id(117)
    dials = 0
    held: dict[PeerId, None] = {}
    effects = one.add_contacts(contacts(*range(200)))
    while True:
        held_after(effects, held)
        assert len(held) <= 8 + SPARE
        if alive in held:
            break
        dials += 1
        assert dials <= 200
        effects = one.handle_dial_failed(next(iter(held)))
    assert one.handle_link_up(alive) == []
    assert one.handle_dial_failed(alive) == []
    tries = []
    for _ in range(12 * 200):
        peer = next(peer for peer in held if peer != alive)
        failures, effects = 1, one.handle_dial_failed(peer)
        while not effects:
            failures, effects = failures + 1, one.handle_dial_failed(peer)
        tries.append(failures)
        held_after(effects, held)
        assert alive in held
    rounds = [sum(tries[start : start + 200]) for start in range(0, len(tries), 200)]
    assert rounds == sorted(rounds)
    assert rounds[0] < 2 * 200
    assert 8 * 200 <= rounds[-1] < 9 * 200


def test_who_was_not_met_for_long_has_its_turn_after_the_others() -> None:
    one = mesh(2)
    one.add_contacts(contacts(*range(100)), doubtful=True)
    fresh = mesh(2)
    fresh.add_contacts(contacts(0, 1, 2, 3, 4, 5))
    fresh.add_contacts(contacts(*range(100)), doubtful=True)
    assert sorted(fresh.held_peers) == sorted(peer_id(number) for number in range(6))


def test_who_has_no_address_is_held_once_it_comes_by_itself() -> None:
    one = mesh(2)
    silent = Contact(peer_id(0))
    assert one.add_contacts([silent]) == []
    assert one.handle_link_up(silent.peer) == [Hold(silent.peer, (), PURPOSE)]
    assert one.handle_link_down(silent.peer) == []
    assert one.handle_link_up(peer_id(99)) == []


def test_who_comes_by_itself_beyond_the_limit_takes_the_place_of_who_goes() -> None:
    one = mesh(1)
    one.add_contacts(contacts(0, 1))
    one.handle_link_up(peer_id(0))
    assert one.handle_link_up(peer_id(1)) == []
    assert one.handle_link_down(peer_id(0)) == [hold(peer_id(1)), Release(peer_id(0), PURPOSE)]


def test_a_new_address_is_told_while_it_is_needed() -> None:
    one = mesh(2)
    one.add_contacts(contacts(0))
    moved = Contact(peer_id(0), ("tls://moved:2",))
    assert one.add_contacts([moved]) == [Hold(peer_id(0), ("tls://moved:2",), PURPOSE)]
    assert one.add_contacts([Contact(peer_id(0))]) == []
    one.handle_link_up(peer_id(0))
    assert one.add_contacts(contacts(0)) == []


def test_forgetting_lets_go_and_fills_up() -> None:
    one = mesh(1)
    one.add_contacts(contacts(*range(SPARE + 2)))
    gone = one.held_peers[0]
    waiting = next(peer_id(n) for n in range(SPARE + 2) if peer_id(n) not in one.held_peers)
    assert one.forget_peer(gone) == [Release(gone, PURPOSE), hold(waiting)]
    assert one.forget_peer(gone) == []
    assert one.handle_dial_failed(gone) == []


def test_a_mesh_can_be_let_go_and_taken_up_again() -> None:
    one = mesh(3)
    one.add_contacts(contacts(*range(3)))
    one.handle_link_up(peer_id(1))
    held = one.held_peers
    assert sorted(one.set_limit(0), key=str) == sorted((Release(peer, PURPOSE) for peer in held), key=str)
    assert one.add_contacts(contacts(7)) == []
    assert one.handle_link_down(peer_id(7)) == []
    again = one.set_limit(3)
    assert again[0] == hold(peer_id(1))
    assert len(again) == 4


def test_who_is_back_tries_all_at_once() -> None:
    one = mesh(3)
    one.add_contacts(contacts(0, 1, 2))
    one.handle_link_up(peer_id(1))
    assert one.retry_silent() == [hold(peer) for peer in one.held_peers if peer != peer_id(1)]


@pytest.mark.parametrize("limit", [4, 8])
def test_random_subsets_make_one_graph(limit: int) -> None:
    """Everyone knows everyone, everyone holds so many: the whole is connected."""
    everyone = [contact(number) for number in range(200)]
    for seed in range(20):
        rng = Random(seed)
        edges: dict[PeerId, dict[PeerId, None]] = {one.peer: {} for one in everyone}
        for one in everyone:
            own = FullMesh(PURPOSE, limit, one.peer, rng, Outbox())
            own.add_contacts(everyone)
            for peer in own.held_peers[:limit]:
                edges[one.peer][peer] = edges[peer][one.peer] = None
        reached = {everyone[0].peer: None}
        ends = [everyone[0].peer]
        while ends:
            fresh = [peer for peer in edges[ends.pop()] if peer not in reached]
            reached |= dict.fromkeys(fresh)
            ends += fresh
        assert len(reached) == 200


STEPS = st.sampled_from(["know", "forget", "linked", "unlinked", "failed", "resize", "retry"])


@given(st.lists(st.tuples(STEPS, st.integers(0, 15)), max_size=120))
def test_holds_are_bounded_and_agree_with_what_is_known(steps: list[tuple[str, int]]) -> None:
    one, limit = mesh(3), 3
    known: dict[PeerId, None] = {}
    held: dict[PeerId, None] = {}
    up: dict[PeerId, None] = {}
    for what, number in steps:
        peer = peer_id(number)
        match what:
            case "know":
                known[peer] = None
                effects = one.add_contacts([contact(number)], doubtful=number % 2 == 0)
            case "forget":
                known.pop(peer, None)
                up.pop(peer, None)
                effects = one.forget_peer(peer)
            case "linked":
                if peer in known:
                    up[peer] = None
                effects = one.handle_link_up(peer)
            case "unlinked":
                up.pop(peer, None)
                effects = one.handle_link_down(peer)
            case "failed":
                effects = one.handle_dial_failed(peer)
            case "retry":
                effects = one.retry_silent()
            case _:
                limit = number % 5
                effects = one.set_limit(limit)
        held_after(effects, held)
        assert held == dict.fromkeys(one.held_peers)
        assert all(peer in known for peer in held)
        assert len(held) <= limit + SPARE
        enough = len([peer for peer in held if peer in up]) >= limit
        assert not enough or all(peer in up for peer in held)
        assert enough or len(held) == min(len(known), limit + SPARE)
