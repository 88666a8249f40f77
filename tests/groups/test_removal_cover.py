"""When a new seed must come before our next message: the known races, and any."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from tests.groups.causal import CHOICES, Choices, World, act, name_of, names, random_world

from linnet.groups import membership, removal_cover
from linnet.groups.membership import closed

MANY = settings(max_examples=2_000 if os.environ.get("LINNET_SOAK") else 80, deadline=None)


def _unwell(world: World) -> str:
    """Those who must heal before they say anything."""
    sick = set[str]()
    for name in world.active():
        replica = world.replicas[name]
        assert removal_cover.needs_heal(replica.cover, replica.history) == (not replica.healthy())
        if not replica.healthy():
            sick.add(name)
    return " ".join(sorted(sick))


COURSES = {
    "a new group and its updates need nothing": ("ABC", [("", ""), ("A! B! *", "")]),
    "a removal alone heals all who get its seed": ("ABCX", [("A-X", ""), ("B< *", "")]),
    "c7: a newcomer that the remover did not know": ("ABX", [("A-X B+D", ""), ("*", "D"), ("D!", "")]),
    "c7: whoever that newcomer adds": ("ABX", [("B+D A-X D< D+E", "D E"), ("* A! *", "")]),
    "c7: a newcomer whose adder had the seed": ("ABX", [("A-X B< B+D *", "")]),
    "c8: two removals at the same time leave nobody safe": (
        "ABCXY",
        [("A-X B-Y", ""), ("*", "A B C"), ("C!", "A B"), ("A< B<", "")],
    ),
    "c8: a seed of one who saw only one of them": ("ABCXY", [("B-Y A-X C< C!", ""), ("*", "A B C")]),
    "two removals in one operation": ("ABCXY", [("A-XY *", "")]),
    "one removal after the other": ("ABCXY", [("A-X B< B-Y *", "")]),
    "c12: an update beside the removal": ("ABX", [("A-X B! *", "")]),
    "c13: neither seed of two removals of one came after both": ("ABX", [("A-X B-X *", "A B"), ("B! *", "")]),
}
"""Who is there; then what is done, as `act` has it, and who must heal after that."""


@pytest.mark.parametrize(("first", "course"), COURSES.values(), ids=COURSES)
def test_who_must_heal(first: str, course: list[tuple[str, str]]) -> None:
    world = World(first)
    for deeds, unwell in course:
        act(world, deeds)
        assert _unwell(world) == unwell, deeds


def _compact(world: World, who: str) -> None:
    """One forgets what it may; of those whom it forgets nothing more comes."""
    replica = world.replicas[who]
    did = {name: set[int]() for name in world.replicas}
    for at, deed in enumerate(world.deeds):
        if deed.kind in ("add", "remove", "update"):
            did[deed.sender].add(at)
    gone = {id for id in closed(replica.small) if did[name_of(id)] <= replica.had}
    replica.small, replica.small_cover = removal_cover.compact(replica.small, replica.small_cover, gone)
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
                assert removal_cover.needs_heal(replica.cover, replica.history) == sick
                assert removal_cover.needs_heal(replica.small_cover, replica.small) == sick
                assert names(replica.small) == names(replica.history)
        if choices.below(4) == 0:
            _compact(world, who)

    random_world(choices, watch)


def test_forgetting_a_removal_heals_nobody() -> None:
    world = World("ABX")
    act(world, "A-X B+D *")
    replica = world.replicas["D"]
    history, cover = removal_cover.compact(replica.history, replica.cover)
    assert not membership.removes(history)
    assert removal_cover.needs_heal(cover, history)
    history, cover = removal_cover.compact(world.replicas["A"].history, world.replicas["A"].cover)
    assert not removal_cover.needs_heal(cover, history)
