"""Groups under stress: storms of operations, long absences, partitions that flap (U1 to U9)."""

from __future__ import annotations

from linnet.testing.watched_world import WatchedWorld


def test_what_a_removed_member_tells_after_all_know_of_its_removal_is_not_kept() -> None:
    world = WatchedWorld("ABXD", seed=3)
    world.create("A", "BX")
    world.settle()
    x = world.peers["X"].id
    world.add("A", "D")
    for one, two in ("AD", "AB", "DA", "BA", "DB", "BD"):
        while world.deliver(one, two) is not None:
            world.acks(two)
    world.remove("A", "X")
    for one, two in ("AD", "AB", "DB", "BD", "DA", "BA"):
        while world.deliver(one, two) is not None:
            world.acks(two)
    assert x in world.peers["D"].state.closed
    world.deliver("A", "X")  # The addition; of the removal it has not heard.
    assert world.acks("X") is not None
    world.settle()
    state = world.peers["D"].state
    assert x not in state.ratchets
    assert x not in state.channels
    assert not world.peers["D"].faults
