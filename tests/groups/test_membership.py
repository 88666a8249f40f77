"""Who is in a group, as each member sees it: the laws, the races, and the faults that others made."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from tests.groups.causal import (
    CHOICES,
    Choices,
    Past,
    World,
    act,
    apply,
    every_order,
    member,
    mid,
    name_of,
    names,
    op_id,
    random_world,
    replay,
)

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.groups import membership
from linnet.groups.membership import EMPTY, History, decode, encode

SOAK = bool(os.environ.get("LINNET_SOAK"))
MANY = settings(max_examples=2_000 if SOAK else 60, deadline=None)
EVERY_ORDER = 20_000 if SOAK else 500


def _agreed(world: World) -> History:
    """What everything that happened comes to: the same in every order, and as defined."""
    first = replay(world.deeds, range(len(world.deeds)))
    for order in every_order(world.deeds, EVERY_ORDER):
        assert replay(world.deeds, order) == first
    _check_views(first, Past(world.deeds, range(len(world.deeds))))
    return first


def _check_views(history: History, past: Past) -> None:
    assert names(history) == past.view(None)
    for name in past.known():
        assert names(history, name) == past.view(name)


# The laws.


@MANY
@given(CHOICES, CHOICES)
def test_any_order_of_the_same_gives_the_same_and_what_is_defined(deeds: Choices, order: Choices) -> None:
    world = random_world(deeds)
    history = replay(world.deeds, order.order(world.deeds))
    assert history == replay(world.deeds, range(len(world.deeds)))
    assert decode(encode(history)) == history
    _check_views(history, Past(world.deeds, range(len(world.deeds))))


@MANY
@given(CHOICES)
def test_each_member_knows_what_is_defined_of_what_came_to_it(deeds: Choices) -> None:
    world = random_world(deeds)
    for replica in world.replicas.values():
        _check_views(replica.history, Past(world.deeds, replica.had))


@MANY
@given(CHOICES, CHOICES)
def test_on_the_way_nobody_comes_back_and_authors_are_seen_as_they_saw(
    deeds: Choices, order: Choices
) -> None:
    world = random_world(deeds)
    history, removed = EMPTY, set[str]()
    for at in order.order(world.deeds):
        deed = world.deeds[at]
        if deed.kind != "create":
            assert names(history, deed.sender) == deed.view
        before = set(names(history).split())
        history = apply(history, deed, world.deeds)
        after = set(names(history).split())
        assert after - before <= set(deed.whom if deed.kind in ("create", "add") else ())
        removed |= before - after
        assert not after & removed
        if deed.kind == "add":
            newcomer = deed.whom[0]
            assert names(history, newcomer).split() == sorted({*deed.view.split(), newcomer})


@MANY
@given(CHOICES)
def test_when_all_is_told_all_who_are_left_agree(deeds: Choices) -> None:
    world = random_world(deeds)
    world.settle()
    views = {names(world.replicas[name].history) for name in world.active()}
    everything = replay(world.deeds, range(len(world.deeds)))
    assert views <= {names(everything)}
    assert sorted(world.active()) == names(everything).split()
    for removal in everything.removals:
        seen = {name_of(id) for id in membership.seen_by(everything, removal.op)}
        assert seen >= set(world.active())


# The races.


RACES = {
    "a group of one": ("A", "", "A"),
    "additions at the same time both stand": ("AB", "A+C B+D *", "A B C D"),
    "additions one after the other": ("AB", "A+D D+E", "A B D E"),
    "an addition goes with its removed author, if the remover had not seen it": ("ABX", "A-X X+Y", "A B"),
    "one that the remover had seen stays": ("ABX", "X+Y A< A-X", "A B Y"),
    "a cancelled addition takes with it what followed from it": ("AX", "A-X X+Y Y+Z Z+W", "A"),
    "a second remover who had not seen it cancels it after all": ("ABX", "X+Y A< A-X B-X", "A B"),
    "two who remove each other both leave": ("ABC", "A-B B-A", "C"),
    "a removal counts though its author is removed": ("ABC", "A-B B-C", "A"),
    "it is never undone by the removal of its author": ("ABC", "B-C A-B *", "A"),
    "it counts though the addition of its author is cancelled": ("ABX", "A-X X+Y Y-B", "A"),
    "who is removed twice is removed": ("ABX", "A-X B-X *", "A B"),
    "each removes the next": ("ABCDEF", "A-B B-C C-D D-E", "A F"),
    "the removed one is meant by id, wherever others enter": ("ABCX", "A-X B+N *", "A B C N"),
}


@pytest.mark.parametrize(("first", "deeds", "left"), RACES.values(), ids=RACES)
def test_races_end_as_defined(first: str, deeds: str, left: str) -> None:
    world = World(first)
    act(world, deeds)
    assert names(_agreed(world)) == left


def test_only_what_the_remover_had_not_seen_is_cancelled() -> None:
    world = World("AX")
    world.deliver("A", world.add("X", "Y"))
    act(world, "Y+Z X+W A-X")
    history = _agreed(world)
    assert names(history) == "A Y Z"
    removal = world.deeds[-1].op
    assert [name for name in "AWXYZ" if membership.covers(history, removal, mid(name))] == ["W", "X"]


def test_a_group_can_become_empty() -> None:
    world = World("ABC")
    act(world, "A-B B-C C-A *")
    history = _agreed(world)
    assert names(history) == ""
    assert membership.compact(history) == history
    with pytest.raises(RemoteError):
        membership.create(history, op_id("again"), [member("A", op_id("again"))])


def test_a_device_that_is_added_again_is_another_member() -> None:
    world = World(["A", "X1"])
    world.remove("A", "X1")
    world.add("A", "X2")
    history = _agreed(world)
    assert names(history) == "A X2"
    first, second = membership.ever(history, mid("X1")), membership.ever(history, mid("X2"))
    assert first is not None
    assert second is not None
    assert first.device == second.device


def test_one_device_added_twice_at_the_same_time_is_two_members() -> None:
    world = World("AB")
    world.add("A", "D1")
    world.add("B", "D2")
    world.settle()
    assert names(_agreed(world)) == "A B D1 D2"
    world.remove("D1", "D2")
    world.settle()
    assert names(world.replicas["A"].history) == "A B D1"


# Faults that others made.


def test_others_do_not_see_a_removed_member_whose_addition_they_never_saw() -> None:
    """The reference in Java lists it, since it looks at the removal alone."""
    world = World("ABC")
    world.deliver("A", world.add("B", "X"))
    world.remove("A", "X")
    history = replay(world.deeds, range(len(world.deeds)))
    assert names(history, "C") == "A B C"
    assert names(history, "B") == "A B C X"


def test_a_plain_acknowledgement_of_a_removal_or_addition_changes_the_view() -> None:
    """In p2panda it once had to be of both, which nothing is."""
    world = World("ABX")
    removal = world.remove("A", "X")
    history = world.replicas["A"].history
    assert names(history, "B") == "A B X"
    assert names(membership.ack(history, mid("B"), world.deeds[removal].op), "B") == "A B"
    addition = world.add("A", "D")
    history = world.replicas["A"].history
    assert names(history, "B") == "A B X"
    assert names(membership.ack(history, mid("B"), world.deeds[addition].op), "B") == "A B D X"


def test_adding_and_removing_the_last_one_does_not_depend_on_ids() -> None:
    """In keyhive the larger digest won."""
    for salt in range(16):
        first, last = f"A{salt}", f"Z{salt}"
        world = World([first, last])
        world.remove(first, last)
        world.add(last, "N")
        world.add(first, "M")
        assert names(_agreed(world)) == f"{first} M"


def test_who_was_removed_is_not_added_again_under_the_same_id() -> None:
    world = World("ABX")
    world.remove("A", "X")
    history = replay(world.deeds, range(len(world.deeds)))
    assert names(history) == "A B"
    with pytest.raises(RemoteError) as caught:
        membership.add(history, op_id("again"), mid("B"), member("X", op_id("again")))
    assert caught.value.reason is Reason.DUPLICATE


# What is no operation.


def _refused(history: History, reason: Reason, deed: str, *args: object) -> None:
    before = encode(history)
    with pytest.raises(RemoteError) as caught:
        getattr(membership, deed)(history, *args)
    assert caught.value.reason is reason
    assert encode(history) == before


def test_what_is_refused_changes_nothing() -> None:
    world = World("ABX")
    added = world.add("B", "Y")
    removal = world.remove("A", "X")
    history = replay(world.deeds, range(len(world.deeds)))
    op = op_id("new")
    _refused(history, Reason.DUPLICATE, "create", op, [member("N", op)])
    _refused(EMPTY, Reason.MALFORMED, "create", op, [])
    _refused(EMPTY, Reason.MALFORMED, "create", op, [member("N", op), member("N", op)])
    _refused(EMPTY, Reason.MALFORMED, "create", op, [member("N", op_id("other"))])
    _refused(history, Reason.UNKNOWN_MEMBER, "add", op, mid("?"), member("N", op))
    _refused(history, Reason.MALFORMED, "add", op, mid("A"), member("N", op_id("other")))
    _refused(history, Reason.UNKNOWN_MEMBER, "remove", op, mid("?"), [mid("A")])
    _refused(history, Reason.UNKNOWN_MEMBER, "remove", op, mid("B"), [mid("?")])
    _refused(history, Reason.UNKNOWN_MEMBER, "remove", op, mid("A"), [mid("X")])
    _refused(history, Reason.UNKNOWN_MEMBER, "remove", op, mid("A"), [mid("Y")])
    _refused(history, Reason.MALFORMED, "remove", op, mid("B"), [])
    _refused(history, Reason.MALFORMED, "remove", op, mid("B"), [mid("A"), mid("A")])
    _refused(history, Reason.MALFORMED, "remove", op, mid("B"), [mid("B")])
    known = world.deeds[added].op
    _refused(history, Reason.DUPLICATE, "add", known, mid("A"), member("N", known))
    _refused(history, Reason.DUPLICATE, "remove", world.deeds[removal].op, mid("B"), [mid("A")])
    _refused(history, Reason.NOT_ALLOWED, "ack", mid("X"), world.deeds[removal].op)
    _refused(history, Reason.UNKNOWN_MEMBER, "ack", mid("?"), world.deeds[removal].op)
    _refused(history, Reason.UNKNOWN_MEMBER, "view", mid("?"))


def test_questions_about_operations() -> None:
    world = World("ABX")
    added = world.deeds[world.add("A", "Y")].op
    removal = world.deeds[world.remove("A", "X")].op
    history = world.replicas["A"].history
    assert membership.is_membership_op(history, removal)
    assert membership.is_membership_op(history, added)
    assert not membership.is_membership_op(history, op_id("an update"))
    assert membership.added_in(history, added) == (mid("Y"),)
    assert membership.added_in(history, removal) == ()
    assert membership.seen_by(history, added) == tuple(sorted([mid("A"), mid("Y")]))
    assert membership.seen_by(history, op_id("an update")) == ()
    assert membership.removes(history) == {removal}
    assert membership.removes_seen_by(history, mid("A")) == {removal}
    assert membership.removes_seen_by(history, mid("B")) == frozenset()
    assert not membership.covers(history, added, mid("X"))
    assert membership.sees(history, mid("B"), mid("X"))
    assert not membership.sees(history, None, mid("X"))
    assert not membership.sees(history, None, mid("?"))
