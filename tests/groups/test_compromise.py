"""States are stolen, and whoever has them really tries to read: what opens, and what does not (S1 to S15).

Each test says who is robbed and then looks at every text: `readable` are all that the attacker opened.
The rule of what must be safe is asked each time as well, and nothing that it calls safe was ever opened.
"""

from __future__ import annotations

import pytest
from tests.groups.group_world import act
from tests.groups.watched_world import WatchedWorld

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.state import Hardening
from linnet.sim.groups.world import Theft

UNHEALED = Hardening(heal_before_sending=False)
GULLIBLE = Hardening(withhold_from_outsiders=False, heal_before_sending=False)
DIRECTORY_ONLY = Hardening(inband_prekeys=False)
OLD_ONE_TIME = Hardening(renewed_one_time=False)


def group(founders: str, others: str = "", hardening: Hardening | None = None) -> WatchedWorld:
    world = WatchedWorld(founders + others, seed=1, hardening=hardening)
    world.create(founders[0], founders[1:])
    world.settle()
    world.pass_days(2)
    return world


def readable(world: WatchedWorld, *thefts: Theft) -> set[str]:
    found = world.read(*thefts)
    assert found & world.safe(*thefts) == set()
    return found


def pass_on(world: WatchedWorld, sender: str, to: str) -> None:
    """All that is under way from one to the other arrives and is acknowledged."""
    while world.deliver(sender, to) is not None:
        world.acks(to)


@pytest.mark.parametrize("victim", ["B", "A"], ids=["receiver", "sender"])
def test_s1_what_was_read_is_safe_and_what_comes_is_not(victim: str) -> None:
    world = group("ABC")
    for text in ("m1", "m2", "m3"):
        world.say("A", text)
    world.settle()
    stolen = world.steal(victim)
    world.say("A", "m4")
    world.say("B", "b5")
    assert readable(world, stolen) == {"m4", "b5"}
    assert world.safe(stolen) == {"m1", "m2", "m3"}


def test_s1_within_a_day_of_its_use_a_one_time_prekey_still_opens_the_first_epoch() -> None:
    world = WatchedWorld("ABC", seed=1)
    world.create("A", "BC")
    world.settle()
    world.say("A", "m1")
    world.settle()
    early = world.steal("B")
    world.pass_days(2)
    late = world.steal("B")
    assert readable(world, early) == {"m1"}
    assert readable(world, late) == set()


def test_s3_an_update_heals_each_sender_from_where_it_takes_it_in() -> None:
    world = group("ABC")
    stolen = world.steal("A")
    world.say("B", "pre")
    world.update("A")
    world.say("A", "a")
    world.say("B", "b0")
    pass_on(world, "A", "B")
    world.say("B", "b1")
    world.settle()
    world.say("C", "c")
    assert readable(world, stolen) == {"pre", "b0"}
    assert world.safe(stolen) == {"a", "b1", "c"}


def test_s3b_an_update_of_another_does_not_heal_who_was_robbed() -> None:
    world = group("ABC")
    stolen = world.steal("A")
    world.update("B")
    world.say("B", "b")
    world.settle()
    world.say("C", "c")
    assert readable(world, stolen) == {"b", "c"}


def test_s4_an_update_heals_also_while_another_updates() -> None:
    world = group("ABC")
    stolen = world.steal("A")
    act(world, "A! B! *")
    for name in "ABC":
        world.say(name, name.lower())
    assert readable(world, stolen) == set()
    assert world.safe(stolen) == {"a", "b", "c"}


def test_s5_two_robbed_who_update_at_the_same_time_need_one_update_after_both() -> None:
    world = group("ABC")
    stolen = (world.steal("A"), world.steal("B"))
    act(world, "A! B! *")
    for name in "ABC":
        world.say(name, f"{name.lower()}1")
    world.update("C")
    world.settle()
    for name in "ABC":
        world.say(name, f"{name.lower()}2")
    assert readable(world, *stolen) == {"a1", "b1", "c1"}
    assert world.safe(*stolen) == {"a2", "b2", "c2"}
    assert readable(world, stolen[0]) == set()


def test_s5b_two_robbed_who_update_one_after_the_other_are_healed() -> None:
    world = group("ABC")
    stolen = (world.steal("A"), world.steal("B"))
    world.update("A")
    world.settle()
    world.say("C", "between")
    world.update("B")
    world.settle()
    for name in "ABC":
        world.say(name, name.lower())
    assert readable(world, *stolen) == {"between"}
    assert world.safe(*stolen) == {"a", "b", "c"}


def test_s6_who_is_removed_reads_each_until_it_has_heard_of_it() -> None:
    world = group("ABX")
    stolen = [world.steal("X")]
    world.remove("A", "X")
    stolen.append(world.steal("X"))
    world.say("A", "a")
    world.say("B", "b0")
    pass_on(world, "A", "B")
    world.say("B", "b1")
    world.settle()
    stolen.append(world.steal("X"))
    assert readable(world, *stolen) == {"b0"}
    assert world.safe(*stolen) == {"a", "b1"}


def two_removals(hardening: Hardening | None) -> tuple[WatchedWorld, Theft, Theft]:
    world = group("ABCXY", hardening=hardening)
    x, y = world.steal("X"), world.steal("Y")
    act(world, "A-X B-Y *")
    return world, x, y


def test_s7_two_removed_at_the_same_time_read_together_until_somebody_heals() -> None:
    world, x, y = two_removals(UNHEALED)
    for name in "ABC":
        world.say(name, f"{name.lower()}1")
    world.update("C")
    world.settle()
    for name in "ABC":
        world.say(name, f"{name.lower()}2")
    assert readable(world, x, y) == {"a1", "b1", "c1"}
    assert readable(world, x) == set()
    assert readable(world, y) == set()


def test_s7_so_nobody_speaks_before_that() -> None:
    world, x, y = two_removals(None)
    for name in "ABC":
        with pytest.raises(Refused, match=Reason.NEEDS_HEAL):
            world.say(name, "too early")
    world.update("C")
    world.settle()
    for name in "ABC":
        world.say(name, name.lower())
    assert readable(world, x, y) == set()
    assert world.safe(x, y) == {"a", "b", "c"}


def cancelled_addition(hardening: Hardening) -> tuple[WatchedWorld, list[Theft]]:
    """A removes X, who adds Y meanwhile. C took the addition before the removal, B after it."""
    world = group("ABCX", "Y", hardening=hardening)
    stolen = [world.steal("X"), world.steal("Y")]
    world.remove("A", "X")
    world.add("X", "Y")
    stolen.append(world.steal("X"))
    pass_on(world, "X", "Y")
    pass_on(world, "A", "B")
    pass_on(world, "X", "C")
    pass_on(world, "X", "B")
    pass_on(world, "C", "B")
    pass_on(world, "A", "C")
    world.settle()
    world.say("B", "b")
    pass_on(world, "B", "Y")
    stolen.append(world.steal("Y"))
    return world, stolen


def test_s8_who_was_added_by_a_removed_member_is_told_nothing() -> None:
    world, stolen = cancelled_addition(UNHEALED)
    for name in "ABC":
        assert len(agreement.members(world.peers[name].state)) == 3
    world.say("A", "a")
    world.say("C", "c")
    assert readable(world, *stolen) == set()
    assert world.safe(*stolen) == {"a", "b", "c"}


def test_s8_without_that_the_two_read_on() -> None:
    world, stolen = cancelled_addition(GULLIBLE)
    assert world.read(*stolen) & world.safe(*stolen) == {"b"}


def test_s8c_what_is_told_to_a_newcomer_before_the_removal_is_worth_nothing_after_it() -> None:
    world = group("ABX", "Y")
    stolen = [world.steal("X"), world.steal("Y")]
    world.remove("A", "X")
    world.add("X", "Y")
    pass_on(world, "X", "B")
    world.say("B", "between")
    pass_on(world, "A", "B")
    world.say("B", "after")
    world.settle()
    stolen += (world.steal("X"), world.steal("Y"))
    assert readable(world, *stolen) == {"between"}
    assert world.safe(*stolen) == {"after"}


def test_s9_a_newcomer_has_nothing_of_before() -> None:
    world = group("ABC", "D")
    world.say("A", "a0")
    world.say("B", "b0")
    world.add("A", "D")
    world.say("B", "b1")  # B does not know yet.
    world.settle_operations()
    stolen = world.steal("D")
    assert len(world.peers["D"].state.ratchets) == 4
    for name in "ABC":
        world.say(name, f"{name.lower()}2")
    assert readable(world, stolen) == {"a2", "b2", "c2"}
    assert world.safe(stolen) == {"a0", "b0", "b1"}


def test_s10_an_addition_heals_nothing() -> None:
    world = group("ABC", "D")
    stolen = world.steal("A")
    world.add("B", "D")
    world.settle()
    for name in "ABCD":
        world.say(name, name.lower())
    assert readable(world, stolen) == {"a", "b", "c", "d"}


def test_s11_one_who_is_away_keeps_the_group_readable_until_it_is_removed() -> None:
    world = group("ABZ")
    stolen = world.steal("Z")
    for turn, name in enumerate("ABA"):
        world.update(name)
        for one, two in ("AB", "BA", "AB"):
            pass_on(world, one, two)
        world.say("A", f"a{turn}")
        world.say("B", f"b{turn}")
    world.remove("A", "Z")
    pass_on(world, "A", "B")
    world.say("A", "a3")
    world.say("B", "b3")
    assert readable(world, stolen) == {f"{name}{turn}" for name in "ab" for turn in range(3)}
    assert world.safe(stolen) == {"a3", "b3"}


def test_s12_prekeys_open_nothing_of_the_past() -> None:
    world = WatchedWorld("ABCD", seed=1)
    world.create("A", "BC")
    world.settle()
    for name in "ABC":
        world.say(name, f"{name.lower()}0")
    world.add("A", "D")
    world.settle()
    for name in "ABCD":
        world.say(name, f"{name.lower()}1")
    world.settle()
    world.pass_days(2)
    stolen = [world.steal(name) for name in "BD"]
    assert readable(world, *stolen) == set()
    assert len(world.safe(*stolen)) == 7


def test_s13_who_is_robbed_loses_the_shares_of_those_who_have_not_acknowledged() -> None:
    world = group("ABC")
    world.update("A")
    pass_on(world, "A", "B")
    stolen = world.steal("B")
    world.settle()
    world.say("C", "c")
    assert readable(world, stolen) == {"c"}


def removal_and_addition(hardening: Hardening | None) -> tuple[WatchedWorld, Theft]:
    world = group("ABX", "D", hardening=hardening)
    stolen = world.steal("X")
    act(world, "A-X B+D *")
    assert agreement.needs_heal(world.peers["D"].state)
    return world, stolen


def test_s14_a_newcomer_beside_a_removal_is_readable_until_it_heals() -> None:
    world, stolen = removal_and_addition(UNHEALED)
    for name in "ABD":
        world.say(name, f"{name.lower()}1")
    world.update("D")
    world.settle()
    for name in "ABD":
        world.say(name, f"{name.lower()}2")
    assert readable(world, stolen) == {"d1"}
    assert world.safe(stolen) == {"a1", "b1", "a2", "b2", "d2"}


def test_s14_so_it_does_not_speak_before_that() -> None:
    world, stolen = removal_and_addition(None)
    with pytest.raises(Refused, match=Reason.NEEDS_HEAL):
        world.say("D", "too early")
    world.update("A")
    world.settle()
    world.say("D", "d")
    assert readable(world, stolen) == set()


def healed_beside_an_addition(hardening: Hardening | None) -> tuple[WatchedWorld, Theft]:
    """M heals while S is being added, and S then heals, too: by which of M's keys?"""
    world = group("ABM", "S", hardening=hardening)
    stolen = world.steal("M")
    world.update("M")
    world.add("A", "S")
    pass_on(world, "A", "S")
    pass_on(world, "M", "S")
    world.update("S")
    world.say("S", "s")
    world.settle()
    for name in "ABM":
        world.say(name, name.lower())
    return world, stolen


def test_s15_a_heal_holds_also_for_those_who_were_being_added() -> None:
    world, stolen = healed_beside_an_addition(None)
    assert readable(world, stolen) == set()
    assert world.safe(stolen) == {"a", "b", "m", "s"}


def test_s15_by_prekeys_of_the_directory_alone_it_would_not() -> None:
    world, stolen = healed_beside_an_addition(DIRECTORY_ONLY)
    assert world.read(stolen) & world.safe(stolen) == {"s"}


def robbed_before_and_after_its_heal(hardening: Hardening | None) -> tuple[WatchedWorld, Theft, Theft]:
    """The same, and days later M is robbed again: of its in-band prekey, but of no used one-time prekey."""
    world, before = healed_beside_an_addition(hardening)
    world.settle()
    world.pass_days(2)
    return world, before, world.steal("M")


def test_s15_robbed_before_and_after_its_heal_both_thefts_together_open_nothing() -> None:
    world, before, after = robbed_before_and_after_its_heal(None)
    assert world.safe(before, after) == {"a", "b", "m", "s"}
    assert readable(world, before, after) == set()


def test_s15_with_one_time_prekeys_older_than_the_heal_they_would() -> None:
    world, before, after = robbed_before_and_after_its_heal(OLD_ONE_TIME)
    assert world.read(before) == world.read(after) == set()
    assert world.read(before, after) & world.safe(before, after) == {"s"}
