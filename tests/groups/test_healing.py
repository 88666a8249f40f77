"""When a new seed must come before our next message: the known races, and any."""

from __future__ import annotations

import os

from hypothesis import given, settings
from tests.groups.causal import CHOICES, Choices, World, name_of, names, random_world

from linnet.groups import healing, membership
from linnet.groups.closure import closed

MANY = settings(max_examples=2_000 if os.environ.get("LINNET_SOAK") else 80, deadline=None)


def _unwell(world: World) -> str:
    """Those who must heal before they say anything."""
    sick = set[str]()
    for name in world.active():
        replica = world.replicas[name]
        assert healing.needs_heal(replica.cover, replica.history) == (not replica.healthy())
        if not replica.healthy():
            sick.add(name)
    return " ".join(sorted(sick))


def test_before_any_seed_nobody_is_safe() -> None:
    assert healing.needs_heal(healing.NONE, membership.EMPTY)


def test_a_new_group_and_its_updates_need_nothing() -> None:
    world = World("ABC")
    assert _unwell(world) == ""
    world.update("A")
    world.update("B")
    world.settle()
    assert _unwell(world) == ""


def test_a_removal_alone_heals_all_who_get_its_seed() -> None:
    world = World("ABCX")
    removal = world.remove("A", "X")
    assert _unwell(world) == ""
    world.deliver("B", removal)
    world.settle()
    assert _unwell(world) == ""


def test_c7_a_newcomer_that_the_remover_did_not_know_must_heal() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.add("B", "D")
    assert _unwell(world) == ""
    world.settle()
    assert _unwell(world) == "D"
    world.update("D")
    assert _unwell(world) == ""


def test_c7_whoever_that_newcomer_adds_must_heal_too() -> None:
    world = World("ABX")
    removal = world.remove("A", "X")
    world.add("B", "D")
    world.deliver("D", removal)
    world.add("D", "E")
    assert _unwell(world) == "D E"
    world.settle()
    world.update("A")
    world.settle()
    assert _unwell(world) == ""


def test_c7_a_seed_by_one_who_saw_the_removal_heals_the_newcomer() -> None:
    world = World("ABX")
    world.deliver("B", world.remove("A", "X"))
    world.add("B", "D")
    world.settle()
    assert _unwell(world) == "", "the adder had it"


def test_c8_two_removals_at_the_same_time_leave_nobody_safe() -> None:
    world = World("ABCXY")
    world.remove("A", "X")
    world.remove("B", "Y")
    assert _unwell(world) == ""
    world.settle()
    assert _unwell(world) == "A B C"
    healed = world.update("C")
    assert _unwell(world) == "A B"
    world.deliver("A", healed)
    world.deliver("B", healed)
    assert _unwell(world) == ""


def test_c8_a_seed_of_one_who_saw_only_one_of_them_does_not_heal() -> None:
    world = World("ABCXY")
    first = world.remove("A", "X")
    world.remove("B", "Y")
    world.deliver("C", first)
    half = world.update("C")
    assert _unwell(world) == ""
    world.deliver("A", half)
    world.settle()
    assert _unwell(world) == "A B C"


def test_two_removals_in_one_operation_need_nothing() -> None:
    world = World("ABCXY")
    world.remove("A", "X", "Y")
    world.settle()
    assert _unwell(world) == ""


def test_one_removal_after_the_other_needs_nothing() -> None:
    world = World("ABCXY")
    world.deliver("B", world.remove("A", "X"))
    world.remove("B", "Y")
    world.settle()
    assert _unwell(world) == ""


def test_c12_an_update_beside_the_removal_does_no_harm() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.update("B")
    world.settle()
    assert _unwell(world) == ""


def test_c13_two_removals_of_the_same_member_ask_for_healing() -> None:
    """Neither seed came after both: more than is needed, but safe."""
    world = World("ABX")
    world.remove("A", "X")
    world.remove("B", "X")
    world.settle()
    assert _unwell(world) == "A B"
    world.update("B")
    world.settle()
    assert _unwell(world) == ""


def _compact(world: World, who: str) -> None:
    """One forgets what it may; of those whom it forgets nothing more comes."""
    replica = world.replicas[who]
    did = {name: set[int]() for name in world.replicas}
    for at, deed in enumerate(world.deeds):
        if deed.kind in ("add", "remove", "update"):
            did[deed.sender].add(at)
    gone = {id for id in closed(replica.small) if did[name_of(id)] <= replica.had}
    replica.small, replica.small_cover = healing.compact(replica.small, replica.small_cover, gone)
    for id in gone:
        if membership.ever(replica.small, id) is None:
            world.replicas[name_of(id)].active = False


@MANY
@given(CHOICES)
def test_one_set_says_what_all_sets_say_also_where_much_is_forgotten(choices: Choices) -> None:
    def watch(world: World, who: str) -> None:
        for replica in world.replicas.values():
            if replica.active:
                sick = not replica.healthy()
                assert healing.needs_heal(replica.cover, replica.history) == sick
                assert healing.needs_heal(replica.small_cover, replica.small) == sick
                assert names(replica.small) == names(replica.history)
        if choices.below(4) == 0:
            _compact(world, who)

    random_world(choices, watch)


def test_forgetting_a_removal_heals_nobody() -> None:
    world = World("ABX")
    world.remove("A", "X")
    world.add("B", "D")
    world.settle()
    replica = world.replicas["D"]
    history, cover = healing.compact(replica.history, replica.cover)
    assert not membership.removes(history)
    assert healing.needs_heal(cover, history)
    history, cover = healing.compact(world.replicas["A"].history, world.replicas["A"].cover)
    assert not healing.needs_heal(cover, history)
