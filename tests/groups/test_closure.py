"""What of a history may be forgotten, and that nobody notices."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from tests.groups.causal import (
    CHOICES,
    Choices,
    World,
    act,
    apply,
    mid,
    name_of,
    names,
    op_id,
    random_world,
    replay,
)

from linnet.groups import membership
from linnet.groups.membership import EMPTY, History, closed, compact, encode, is_closed

MANY = settings(max_examples=2_000 if os.environ.get("LINNET_SOAK") else 80, deadline=None)


def _all(world: World) -> History:
    return replay(world.deeds, range(len(world.deeds)))


def _closed(history: History) -> str:
    assert {each.id for each in history.members if is_closed(history, each.id)} == set(closed(history))
    return " ".join(sorted(map(name_of, closed(history))))


COURSES = {
    "a removed member is closed once all have seen it": ("ABCX", [("A-X", ""), ("B<", ""), ("C<", "X")]),
    "a newcomer who has not seen the removal keeps it open": ("ABX", [("B+D A-X B<", ""), ("D<", "X")]),
    "one who is removed and saw no removal keeps others open": ("ABLX", [("A-X B< A-L", ""), ("B<", "L X")]),
    "two who removed each other are closed together": ("ABC", [("B-A A-B C<", "B"), ("*", "A B")]),
}
"""Who is there; then what is done, as `act` has it, and who may be forgotten after that.

Who is removed may have passed on what another did, and some take that before they hear of its removal.
"""


@pytest.mark.parametrize(("first", "course"), COURSES.values(), ids=COURSES)
def test_who_may_be_forgotten(first: str, course: list[tuple[str, str]]) -> None:
    world = World(first)
    for deeds, gone in course:
        act(world, deeds)
        assert _closed(_all(world)) == gone, deeds
    assert not is_closed(_all(world), mid("?"))


def test_different_removals_of_the_same_member_will_do() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.remove("B", "X")
    history = _all(world)
    assert _closed(history) == "X"
    small = compact(history)
    assert names(small) == "A B"
    assert len(small.removals) == 2, "neither has seen the other's"
    assert not any(each.covered for each in small.removals)


def test_who_is_to_be_waited_for_stays() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.settle()
    history = _all(world)
    kept = compact(history, gone=())
    assert [each.id for each in kept.members] == [each.id for each in history.members]
    assert len(kept.removals) == 1
    assert not kept.additions
    gone = compact(kept, gone={mid("X"), mid("A")})
    assert sorted(name_of(each.id) for each in gone.members) == ["A", "B"]
    assert not gone.removals
    assert gone == compact(history)


def test_who_has_not_seen_it_is_waited_for_with_it() -> None:
    """L acts as if X were there: X cannot be forgotten while L is not."""
    world = World("ABLX")
    world.deliver("B", world.remove("A", "X"))
    world.deliver("B", world.remove("A", "L"))
    history = _all(world)
    assert _closed(history) == "L X"
    assert membership.ever(compact(history, gone={mid("X")}), mid("X")) is not None
    assert membership.ever(compact(history, gone={mid("L"), mid("X")}), mid("X")) is None


def test_a_removal_by_a_forgotten_member_counts_while_not_all_have_seen_it() -> None:
    world = World("ABCX")
    unseen = world.remove("X", "B")
    removal = world.remove("A", "X")
    world.deliver("B", removal)
    world.deliver("C", removal)
    history = compact(_all(world))
    assert membership.ever(history, mid("X")) is None
    assert membership.seen_by(history, world.deeds[unseen].op) == ()
    assert names(history) == "A C"
    assert names(history, "C") == "A B C"
    assert names(membership.ack(history, mid("C"), world.deeds[unseen].op), "C") == "A C"


@MANY
@given(CHOICES, CHOICES)
def test_nobody_notices_what_was_forgotten(deeds: Choices, order: Choices) -> None:
    """Of a forgotten member nothing but acknowledgements is still under way: the caller waited for it."""
    world = random_world(deeds)
    todo = order.order(world.deeds)
    history = small = EMPTY
    for count, at in enumerate(todo):
        deed = world.deeds[at]
        history = apply(history, deed, world.deeds)
        if deed.kind == "create" or membership.ever(small, mid(deed.sender)) is not None:
            small = apply(small, deed, world.deeds)
        if order.below(3) == 0:
            rest = {
                world.deeds[later].sender for later in todo[count + 1 :] if world.deeds[later].kind != "ack"
            }
            small = compact(small, gone={id for id in closed(small) if name_of(id) not in rest})
        _same(history, small)


def _same(history: History, small: History) -> None:
    assert names(small) == names(history)
    known, known_small = membership.removes(history), membership.removes(small)
    assert known_small <= known
    for each in small.members:
        assert membership.ever(history, each.id) == each
        assert membership.view(small, each.id) == membership.view(history, each.id)
        seen, seen_small = (membership.removes_seen_by(which, each.id) for which in (history, small))
        assert (known <= seen) == (known_small <= seen_small)
        assert seen_small == seen & known_small
    assert {each for each in closed(history) if membership.ever(small, each)} == set(closed(small))


@MANY
@given(CHOICES)
def test_when_all_is_told_only_the_members_are_left(deeds: Choices) -> None:
    world = random_world(deeds)
    world.settle()
    small = compact(_all(world))
    if names(small):
        assert " ".join(sorted(name_of(each.id) for each in small.members)) == names(small)
        assert not small.additions
        assert not small.removals
    assert compact(small) == small


def test_a_group_that_lives_long_does_not_grow() -> None:
    world = World(["A", "B", "C"])
    history = _all(world)
    sizes = set[int]()
    for at in range(100):
        added, removed = op_id(f"add {at}"), op_id(f"remove {at}")
        newcomer = membership.Member(mid(f"N{at}"), history.members[0].device, bytes(32), added)
        history = membership.add(history, added, mid("A"), newcomer)
        for name in "BC":
            history = membership.ack(history, mid(name), added)
        history = membership.remove(history, removed, mid("B"), [newcomer.id])
        for name in "AC":
            history = membership.ack(history, mid(name), removed)
        history = compact(history)
        sizes.add(len(encode(history)))
    assert sizes == {7 + 3 * 90 + 34}
