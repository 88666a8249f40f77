"""Who gives way when something limited is used up: whoever takes up most, by network and then by key."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core import fair_shares
from linnet.core.fair_shares import FairShares, Origins
from linnet.core.ids import PeerId


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


A, B, C, D = map(peer, range(4))


def origins(**networks: tuple[PeerId, ...]) -> Origins:
    made = Origins()
    for network, peers in networks.items():
        for each in peers:
            made.note(each, network)
    return made


def shares(limit: int, of: Origins, held: dict[PeerId, int]) -> FairShares:
    made = FairShares(limit, of)
    for each, amount in held.items():
        made.add(each, amount)
    return made


def test_there_is_room_up_to_the_limit() -> None:
    made = shares(3, Origins(), {A: 1, B: 1})
    assert not made.is_full()
    assert made.is_full(2)
    made.add(A)
    assert made.is_full()
    made.remove(B)
    assert (made.used, made.share(A), made.share(B), len(made)) == (2, 2, 0, 1)
    assert not made.is_full()


def test_the_greediest_network_gives_way_and_in_it_the_greediest_key() -> None:
    made = shares(6, origins(x=(A, B), y=(C,)), {A: 2, B: 1, C: 3})
    # A and B together hold as much as C; two of them came first.
    assert made.find_greedier(D) == A
    made.remove(A)
    assert made.find_greedier(D) == C


def test_many_keys_of_one_network_count_as_one() -> None:
    sybils = tuple(map(peer, range(100, 150)))
    made = shares(53, origins(x=sybils, y=(A,)), {**dict.fromkeys(sybils, 1), A: 3})
    assert made.find_greedier(B) in sybils
    assert made.find_greedier(A) in sybils
    assert made.find_greedier(sybils[0]) is None


def test_nobody_gives_way_to_who_would_then_hold_more() -> None:
    made = shares(4, origins(x=(A,), y=(B,)), {A: 2, B: 2})
    assert made.find_greedier(A) is None
    assert made.find_greedier(B) is None
    assert made.find_greedier(C) == A
    assert made.find_greedier(C, 2) is None
    even = shares(3, Origins(), {A: 1, B: 1, C: 1})
    assert even.find_greedier(D) is None


def test_within_a_network_the_greedier_key_gives_way() -> None:
    made = shares(6, origins(x=(A, B, C)), {A: 4, B: 2})
    assert made.find_greedier(C) == A
    assert made.find_greedier(B) == A
    assert made.find_greedier(B, 2) is None
    assert made.find_greedier(A) is None


def test_peers_without_a_network_count_one_by_one() -> None:
    honest = list(map(peer, range(1, 201)))
    made = shares(300, Origins(), {**dict.fromkeys(honest, 1), A: 100})
    assert all(made.find_greedier(each) == A for each in honest)


def test_where_a_peer_came_from_when_it_began_to_take_counts() -> None:
    """Else one that comes back from elsewhere would leave what it took to nobody."""
    of = origins(x=(A,))
    made = shares(3, of, {A: 3})
    of.note(A, "y")
    made.remove(A, 2)
    of.note(B, "y")
    made.add(B, 2)
    assert made.find_greedier(C) == B
    made.remove(A)
    made.remove(B, 2)
    assert (made.used, len(made)) == (0, 0)


def test_more_than_is_held_cannot_be_given_up() -> None:
    made = shares(3, Origins(), {A: 1})
    with pytest.raises(ValueError, match="holds 1 cannot give up 2"):
        made.remove(A, 2)
    with pytest.raises(ValueError, match="holds 0"):
        made.remove(B)


def test_the_origins_of_few_peers_without_a_link_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_shares, "REMEMBERED", 2)
    of = origins(x=(A, B, C))
    for each in (A, B, D, C):
        of.note_gone(each)
    assert [of.of(each) for each in (A, B, C, D)] == [A, "x", "x", D]
    of.note(C, None)
    assert of.of(C) == C


def test_keys_that_come_and_go_do_not_push_out_the_origin_of_a_peer_that_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_shares, "REMEMBERED", 2)
    of = origins(x=(A,))
    for number in range(100, 110):
        of.note(peer(number), "x")
        of.note_gone(peer(number))
    assert of.of(A) == "x"


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 3), st.booleans(), st.booleans()), min_size=1, max_size=60
    )
)
def test_the_answer_is_that_of_a_count_anew(steps: list[tuple[int, int, bool, bool]]) -> None:
    of = Origins()
    for number in range(8):
        of.note(peer(number), "abc"[number % 3])
    made, held = FairShares(10, of), Counter[PeerId]()
    for number, amount, is_taken, is_asked in steps:
        who = peer(number)
        if is_taken:
            made.add(who, amount)
            held[who] += amount
        elif held[who] >= amount:
            made.remove(who, amount)
            held[who] -= amount
        if is_asked:
            check(made, of, +held)
    check(made, of, +held)


def check(made: FairShares, of: Origins, held: Counter[PeerId]) -> None:
    groups = Counter[object]()
    for each, amount in held.items():
        groups[of.of(each)] += amount
    assert made.used == held.total()
    for who in (peer(0), peer(9), peer(77)):
        found = made.find_greedier(who)
        largest = max(groups.values(), default=0)
        if found is None:
            own = {each: held[each] for each in held if of.of(each) == of.of(who)}
            is_own = groups[of.of(who)] == largest
            assert (
                largest <= groups[of.of(who)] + 1
                or (is_own and max(own.values()) <= held[who] + 1)
                or (is_own and max(own, key=own.__getitem__) == who)
            )
        else:
            assert groups[of.of(found)] == largest
            assert held[found] == max(held[each] for each in held if of.of(each) == of.of(found))
            assert found != who
