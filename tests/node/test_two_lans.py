"""Two local networks in namespaces, with one node on both: cut apart, and joined again.

There is no tracker, no address to begin with, and no internet: all that nodes know of each other came by
multicast on their own network, or by the node that is on both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.edge.namespaces import Lab, lab
from tests.node.lan_world import LanWorld, wait_for

from linnet.edge.commands import ExamineLan

SIZE = 6 if os.environ.get("LINNET_SOAK") else 2
"""Nodes on each network beside the one on both."""
LEFT = tuple(f"left{number}" for number in range(SIZE))
RIGHT = tuple(f"right{number}" for number in range(SIZE))
GATE = "gate"


@pytest.fixture
def networks() -> Iterator[Lab]:
    with lab() as made:
        yield made


@pytest.mark.timeout(300)
def test_two_networks_are_cut_apart_and_joined_again(tmp_path: Path, networks: Lab) -> None:
    left, right = networks.bridge("left"), networks.bridge("right")
    with LanWorld(tmp_path, networks) as world:
        for names, bridge, prefix in ((LEFT, left, "10.77.0"), (RIGHT, right, "10.77.1")):
            for number, name in enumerate(names, 1):
                networks.plug(world.add(name), bridge, "eth0", f"{prefix}.{number}/24")
        both = world.add(GATE)
        networks.plug(both, left, "eth0", "10.77.0.9/24")
        networks.plug(both, right, "eth1", "10.77.1.9/24")
        world.start({GATE: 2})
        times = [time.monotonic()]

        everyone = (*LEFT, *RIGHT, GATE)
        before = [world.say(name, f"{name}, together") for name in everyone]
        world.until_heard(everyone, before)
        times.append(time.monotonic())

        networks.unplug(both, "eth1")

        def here() -> int:
            return sum(each.is_here for each in world.nodes[GATE].control.ask(ExamineLan()).networks)

        wait_for(lambda: here() == 1, "the cut")
        wait_for(lambda: not world.linked(GATE, RIGHT), "links over the cable that was pulled go down")
        apart_left = [world.say(name, f"{name}, apart") for name in (*LEFT, GATE)]
        apart_right = [world.say(name, f"{name}, apart") for name in RIGHT]
        world.until_heard((*LEFT, GATE), apart_left)
        world.until_heard(RIGHT, apart_right)
        assert not any(world.has(name, [event]) for name in RIGHT for event in apart_left)
        assert not any(world.has(name, [event]) for name in (*LEFT, GATE) for event in apart_right)

        times.append(time.monotonic())
        networks.plug(both, right, "eth1", "10.77.1.9/24")
        world.until_heard(everyone, [*before, *apart_left, *apart_right])
        times.append(time.monotonic())
        after = [world.say(name, f"{name}, together again") for name in everyone]
        world.until_heard(everyone, after)
        found, cut, healed = (late - early for early, late in pairwise(times))
        print(
            f"{len(everyone)} nodes: everyone had everything after {found:.1f} s; both sides went on alone "
            f"for {cut:.1f} s; everything was on both sides {healed:.1f} s after they were joined again"
        )
        assert list(world.wrong()) == []
