from __future__ import annotations

from linnet.groups.bodies import HEAD_BYTES
from linnet.groups.state import decode_state
from linnet.sim.groups.world import GroupNet


def settle(net: GroupNet) -> None:
    moved = True
    while moved:
        moved = False
        for place in range(len(net.machines)):
            for sender in net.reachable(place):
                net.deliver(sender, place)
                moved = True
            net.acks(place)


def group(members: int, others: int = 0, seed: int = 1) -> GroupNet:
    net = GroupNet(members + others, seed, keep_all=True)
    net.create(0, range(1, members))
    settle(net)
    return net


def test_members_read_each_other_and_others_do_not() -> None:
    net = group(3, others=1)
    id = net.say(1, "hello")
    settle(net)
    assert net.members() == [0, 1, 2]
    assert [len(machine.opened) for machine in net.machines] == [1, 0, 1, 0]
    assert set(net.machines[0].opened.values()) == {"hello"}
    assert set(net.said[id].readers) == {net.machines[0].state.me, net.machines[2].state.me}


def test_nothing_crosses_a_partition_until_it_ends() -> None:
    net = group(3)
    net.sides = [0, 0, 1]
    net.update(0)
    net.say(0, "apart")
    settle(net)
    assert len(net.machines[1].opened) == 1
    assert net.machines[2].opened == {}
    net.sides = [0, 0, 0]
    settle(net)
    assert len(net.machines[2].opened) == 1


def test_a_device_that_comes_back_takes_in_what_it_did_itself_before() -> None:
    net = group(4)
    state = net.machines[0].state
    theirs = [member for member in state.history.view_ids(None) if member != state.me]
    device = {net.machines[place].state.me: place for place in range(4)}
    gone, other = theirs[0], theirs[1]
    net.sides = [0 if place != device[gone] else 1 for place in range(4)]
    net.remove(0, [gone])
    settle(net)
    net.remove(device[gone], [other])  # It does not know yet that it is out.
    net.sides = [0] * 4
    settle(net)
    net.publish_keys(device[gone])
    net.add(0, device[gone])
    settle(net)
    net.update(0)
    settle(net)
    views = [net.machines[place].state.history.view_ids(None) for place in net.members()]
    assert len(views) == 3
    assert views[0] == views[1] == views[2]
    assert not any(machine.troubles for machine in net.machines)


def test_a_theft_is_the_state_as_it_is_with_all_that_led_to_it() -> None:
    net = group(2)
    theft = net.steal(1)
    assert decode_state(theft.state) == net.machines[1].state
    assert theft.log == tuple(net.machines[1].log)
    assert len(theft.log) == len(net.machines[1].kept)
    assert repr(theft) == f"Theft(after {len(theft.log)})"


def test_an_update_is_counted_with_its_acknowledgements() -> None:
    net = group(3)
    net.update(0)
    settle(net)
    body = HEAD_BYTES + 32 + 2 + 2 * 149  # A new prekey, a count, and two direct messages of the second kind.
    keys = HEAD_BYTES + 86 + 16 * 36
    acks = 2 * (HEAD_BYTES + 2 + 35)
    assert net.update_bytes() == [body + keys + acks]


def test_prekeys_that_go_with_a_seed_travel_as_all_that_a_device_sends() -> None:
    net = group(3, others=1)
    device, before = net.machines[0].state.ours, net.directory_at(1)(net.machines[0].state.ours)
    net.update(0)
    assert net.directory_at(0)(device) == net.directory(device) != before
    assert net.directory_at(1)(device) == before
    settle(net)
    assert net.directory_at(1)(device) == net.directory_at(3)(device) == net.directory(device)


def test_equal_seeds_give_equal_traces() -> None:
    assert group(3).trace_sha256 == group(3).trace_sha256
    assert group(3).trace_sha256 != group(3, seed=2).trace_sha256
