"""Whatever crashes and splits while host and co-hosts speak: one line, one state, everything once."""

from __future__ import annotations

import os

import pytest
from tests.places.sharing import everybody, run, shared_place

from linnet.places.commands import Announce, Announced
from linnet.sim.luck import named_luck
from linnet.sim.places_world import HOST

SEEDS = range(40) if os.environ.get("LINNET_SOAK") else range(2)


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_that_was_said_is_there_once_and_in_each_speakers_order(seed: int) -> None:
    world = shared_place(8, seed, cohosts=2)
    luck = named_luck(seed, "schedule")
    voices, asked = (HOST, "guest0", "guest1"), dict[int, tuple[str, bytes]]()
    peers = {name: world.identities[name].peer for name in everybody(world)}
    down: str | None = None
    for number in range(12):
        act = luck.choice(("split", "heal", "crash", "none"))
        if act == "split":
            side = luck.sample(everybody(world), 4)
            world.network.partition(
                [
                    [peers[name] for name in side],
                    [peers[name] for name in everybody(world) if name not in side],
                ]
            )
        elif act == "heal":
            world.network.heal()
        elif act == "crash" and down is None:
            down = luck.choice(everybody(world))
            world.crash(down)
        elif down is not None:
            world.restart(down)
            down = None
        name = luck.choice([each for each in voices if each != down])
        body = f"{name} {number}".encode()
        asked[world.ask(name, Announce(world.place, "_message", (), body))] = (name, body)
        run(world, luck.uniform(6.0, 20.0))
    world.network.heal()
    if down is not None:
        world.restart(down)
    run(world, 600)
    lines = {name: [body for _, body in sorted(world.said[name].items()) if body] for name in world.said}
    line = lines[HOST]
    assert all(each == line for each in lines.values())
    assert len(set(line)) == len(line), "nothing twice"
    # A crash may take a command that waited for its turn: whoever gave it was not told that it was said.
    answers = world.network.answers
    said = [each for request, each in asked.items() if isinstance(answers.get(request), Announced)]
    for name in voices:
        own = [body for speaker, body in said if speaker == name]
        assert [body for body in line if body in own] == own, name
    statuses = [world.status(name) for name in everybody(world)]
    assert len({(each.term, each.state_hash) for each in statuses}) == 1
