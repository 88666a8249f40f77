"""Who serves whom: the published example, and what always holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.content.fast.publisher_groups import Errand, Region
from linnet.core.ids import PeerId


def peer(number: int) -> PeerId:
    return PeerId(bytes([number]) * 32)


def settled(region: Region) -> Region:
    """Every deputy says yes to all that it is asked."""
    while errands := list(region.errands()):
        for errand in errands:
            if errand.deputy in region.deputies:
                region.agreed(errand.deputy)
    return region


def filled(capacities: list[int]) -> Region:
    region = Region(5, 2)
    for number, capacity in enumerate(capacities):
        region.add(peer(number), capacity, dialable=True)
        region.arrange({})
    return region


def test_the_sixth_member_makes_the_strongest_serve_the_three_weakest() -> None:
    region = filled([1, 10, 3, 2, 4])
    assert region.deputies == {}
    region.add(peer(5), 0, dialable=True)
    region.arrange({})
    assert list(region.errands()) == [Errand(peer(1), (peer(5), peer(0), peer(3)), ())]
    assert [region.server(peer(number)) for number in range(6)] == [None] * 6, "until it has said yes"
    region.agreed(peer(1))
    assert [number for number in range(6) if region.server(peer(number)) == peer(1)] == [0, 3, 5]
    assert region.deputies[peer(1)].room == 7


def test_newcomers_go_to_who_has_room_and_a_pool_of_the_strongest_stays() -> None:
    region = settled(filled([10, 4, 3, 2, 2, 0]))
    region.add(peer(6), 9, dialable=True)
    region.arrange({})
    settled(region)
    direct = [number for number in range(7) if region.server(peer(number)) is None]
    assert direct == [0, 1, 6], "the deputy, and the two strongest of the others"


def test_without_capacity_the_publisher_serves_all() -> None:
    region = settled(filled([0] * 9))
    assert region.deputies == {}
    assert [region.server(peer(number)) for number in range(9)] == [None] * 9


def test_a_deputy_is_given_no_more_than_it_said() -> None:
    region = settled(filled([1] + [0] * 6))
    assert [(each.capacity, len(each.served)) for each in region.deputies.values()] == [(1, 1)]


def test_room_that_is_freed_is_used_again() -> None:
    """The published program counts it at the wrong place and never uses it again."""
    region = settled(filled([3, 0, 0, 0, 0, 0]))
    assert list(region.deputies[peer(0)].served) == [peer(5), peer(4), peer(3)]
    region.remove(peer(4))
    region.add(peer(6), 0, dialable=True)
    region.arrange({})
    assert list(region.errands()) == [Errand(peer(0), (peer(6),), (peer(4),))]
    region.agreed(peer(0))
    assert region.deputies[peer(0)].room == 0


def test_whom_nobody_can_dial_is_served_by_the_publisher() -> None:
    region = Region(5, 2)
    for number in range(7):
        region.add(peer(number), 10, dialable=number != 6)
        region.arrange({})
    settled(region)
    assert region.server(peer(6)) is None
    region.add(peer(5), 10, dialable=False)
    assert region.server(peer(5)) is None


def test_a_deputy_that_leaves_gives_back_whom_it_served_and_another_takes_them() -> None:
    region = settled(filled([10, 9, 8, 0, 0, 0, 0, 0]))
    assert list(region.deputies) == [peer(0)]
    region.remove(peer(0))
    region.arrange({})
    settled(region)
    assert list(region.deputies) == [peer(1)]
    assert sorted(region.deputies[peer(1)].served) == [peer(number) for number in (4, 5, 6, 7)]


def test_one_who_was_relieved_is_told_and_not_asked_again_while_distrusted() -> None:
    region = settled(filled([10, 0, 0, 0, 0, 9]))
    served = tuple(region.deputies[peer(0)].served)
    assert region.relieve(peer(0)) == list(served)
    region.add(peer(6), 0, dialable=True)
    region.arrange({peer(0): 1.0})
    dismissed, recruited = region.errands()
    assert dismissed == Errand(peer(0), (), served)
    assert recruited.deputy == peer(5)
    assert peer(0) not in region.deputies


def test_one_who_leaves_before_the_deputy_answers_is_taken_from_it_afterwards() -> None:
    region = filled([10, 0, 0, 0, 0, 0])
    (errand,) = region.errands()
    gone = errand.added[0]
    region.remove(gone)
    region.agreed(peer(0))
    assert gone not in region.deputies[peer(0)].served
    assert list(region.errands()) == [Errand(peer(0), (), (gone,))]


def test_who_can_serve_fewer_than_before_gives_some_back() -> None:
    region = settled(filled([10, 0, 0, 0, 0, 0]))
    region.add(peer(0), 1, dialable=True)
    assert len(region.deputies[peer(0)].served) == 1


steps = st.lists(st.tuples(st.sampled_from("abrts"), st.integers(0, 11), st.integers(0, 4)), max_size=60)


@given(steps)
def test_whatever_happens_nobody_is_lost_or_served_twice_or_by_who_cannot(
    steps: list[tuple[str, int, int]],
) -> None:
    region = Region(3, 1)
    told: dict[PeerId, dict[PeerId, None]] = {}
    members: dict[PeerId, int] = {}
    for what, number, capacity in steps:
        who = peer(number)
        if what in "ab":
            members[who] = capacity
            region.add(who, capacity, dialable=True)
        elif what == "r":
            members.pop(who, None)
            region.remove(who)
        elif what == "t":
            region.relieve(who)
        region.arrange({})
        errands = list(region.errands()) if what == "s" else []
        for errand in errands:
            known = told.setdefault(errand.deputy, {})
            for each in errand.gone:
                known.pop(each, None)
            known.update(dict.fromkeys(errand.added))
            if errand.deputy in region.deputies:
                region.agreed(errand.deputy)
        for name in members:
            server = region.server(name)
            assert server is None or (server in members and name in told[server] and server != name)
            assert server is None or region.server(server) is None, "two hops at most"
        for name, deputy in region.deputies.items():
            assert len(deputy.served) + len(deputy.adding) <= members[name]
