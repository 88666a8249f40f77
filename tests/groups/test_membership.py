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
from linnet.groups.history import EMPTY, History
from linnet.groups.history_encoding import decode, encode

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


def test_a_group_of_one() -> None:
    world = World("A")
    assert names(_agreed(world)) == "A"


def test_additions_at_the_same_time_both_stand() -> None:
    world = World("AB")
    world.add("A", "C")
    world.add("B", "D")
    assert names(world.replicas["C"].history) == "A B C"
    world.settle()
    assert names(_agreed(world)) == "A B C D"


def test_additions_one_after_the_other_begin_with_what_the_adder_knew() -> None:
    world = World("AB")
    world.add("A", "D")
    world.add("D", "E")
    assert names(world.replicas["E"].history, "B") == "A B"
    assert names(world.replicas["E"].history, "E") == "A B D E"
    assert names(_agreed(world)) == "A B D E"


def test_an_addition_goes_with_its_removed_author_if_the_remover_had_not_seen_it() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.add("X", "Y")
    assert names(_agreed(world)) == "A B"


def test_an_addition_that_the_remover_had_seen_stays() -> None:
    world = World("ABX")
    added = world.add("X", "Y")
    world.deliver("A", added)
    world.remove("A", "X")
    assert names(_agreed(world)) == "A B Y"


def test_cancelled_additions_take_with_them_what_followed_from_them() -> None:
    world = World("AX")
    world.remove("A", "X")
    world.add("X", "Y")
    world.add("Y", "Z")
    world.add("Z", "W")
    assert names(_agreed(world)) == "A"


def test_only_what_the_remover_had_not_seen_is_cancelled() -> None:
    world = World("AX")
    world.deliver("A", world.add("X", "Y"))
    world.add("Y", "Z")
    world.add("X", "W")
    world.remove("A", "X")
    history = _agreed(world)
    assert names(history) == "A Y Z"
    removal = world.deeds[-1].op
    assert [name for name in "AWXYZ" if membership.covers(history, removal, mid(name))] == ["W", "X"]


def test_a_second_remover_who_had_not_seen_the_addition_cancels_it_after_all() -> None:
    world = World("ABX")
    world.deliver("A", world.add("X", "Y"))
    world.remove("A", "X")
    world.remove("B", "X")
    assert names(_agreed(world)) == "A B"


def test_two_who_remove_each_other_both_leave() -> None:
    world = World("ABC")
    world.remove("A", "B")
    world.remove("B", "A")
    assert names(_agreed(world)) == "C"


def test_a_removal_counts_though_its_author_is_removed() -> None:
    world = World("ABC")
    world.remove("A", "B")
    world.remove("B", "C")
    assert names(_agreed(world)) == "A"


def test_a_removal_by_one_whose_addition_is_cancelled_counts() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.add("X", "Y")
    world.remove("Y", "B")
    assert names(_agreed(world)) == "A"


def test_a_member_removed_twice_is_removed() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.remove("B", "X")
    world.settle()
    assert names(_agreed(world)) == "A B"


def test_a_group_can_become_empty() -> None:
    world = World("ABC")
    world.remove("A", "B")
    world.remove("B", "C")
    world.remove("C", "A")
    world.settle()
    history = _agreed(world)
    assert names(history) == ""
    assert membership.compact(history) == history
    with pytest.raises(RemoteError):
        membership.create(history, op_id("again"), [member("A", op_id("again"))])


def test_a_neighbourhood_in_which_everyone_removes_the_next() -> None:
    world = World("ABCDEF")
    for first, second in zip("ABCD", "BCDE", strict=True):
        world.remove(first, second)
    assert names(_agreed(world)) == "A F"


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


def test_the_removed_one_is_meant_by_id_wherever_others_enter() -> None:
    """In keyhive a place was remembered, and another had it by then."""
    for at in range(12):
        world = World("ABCX")
        world.remove("A", "X")
        world.add("B", f"N{at}")
        world.settle()
        assert names(_agreed(world)) == f"A B C N{at}"


def test_the_same_member_is_not_added_twice() -> None:
    """In keyhive it sat in two places."""
    history = replay(World("AB").deeds, [0])
    for name in ("A", "B"):
        with pytest.raises(RemoteError) as caught:
            membership.add(history, op_id("add"), mid("A"), member(name, op_id("add")))
        assert caught.value.reason is Reason.DUPLICATE


def test_who_was_removed_is_not_added_again_under_the_same_id() -> None:
    world = World("ABX")
    world.remove("A", "X")
    history = replay(world.deeds, range(len(world.deeds)))
    assert names(history) == "A B"
    with pytest.raises(RemoteError) as caught:
        membership.add(history, op_id("again"), mid("B"), member("X", op_id("again")))
    assert caught.value.reason is Reason.DUPLICATE


def test_a_removal_is_never_undone_by_the_removal_of_its_author() -> None:
    """In p2panda's access control what depends on an invalid operation was to be invalid."""
    world = World("ABC")
    world.remove("B", "C")
    world.remove("A", "B")
    world.settle()
    assert names(_agreed(world)) == "A"


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


def test_acknowledging_again_or_something_else_changes_nothing() -> None:
    world = World("ABX")
    removal = world.deeds[world.remove("A", "X")].op
    history = replay(world.deeds, range(len(world.deeds)))
    assert membership.ack(history, mid("A"), removal) == history
    assert membership.ack(history, mid("B"), op_id("an update")) == history


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
