"""What was set in a place stays set, whatever is cut: the state is that which follows from the words."""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.places.recounting import Recount, drawn, objects, set_to
from tests.places.sharing import COHOST, everybody, heard, run, shared_place, split

from linnet.places.commands import Announced, ChangePlace, Entered, EnterPlace, PlaceIs
from linnet.places.deed import Policy
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.sim.seeded_random import named_luck


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_forgotten_when_host_and_co_host_part_and_a_guest_comes_in_meanwhile(seed: int) -> None:
    world = shared_place(4, seed, entered=3)
    recount = Recount(world)
    recount.announce(HOST, "hello", set_to("_name", "tea"), set_to("_topic", "cake"))
    run(world, 5)
    split(world, COHOST, "guest1")
    run(world, 10)
    recount.announce(COHOST, "a plain word")
    world.enter("guest3")
    run(world, 20)
    world.network.heal()
    run(world, 300)
    recount.announce(HOST, "and on")
    run(world, 20)
    recount.check(HOST, COHOST, "guest1", "guest2")
    assert objects(world, HOST) == {"_name": b"tea", "_topic": b"cake"}


def test_the_first_change_on_either_side_of_a_split_stays() -> None:
    world = PlacesWorld(1, seed=4)
    world.found()
    people = (world.identities[COHOST].author,)
    world.obtain(HOST, ChangePlace(world.place, cohosts=people), PlaceIs)
    world.enter(COHOST)  # by the deed: no notice, and so nothing that would be state
    run(world, 10)
    split(world, COHOST)
    run(world, 10)
    recount = Recount(world)
    asked = [
        recount.announce(HOST, "here", set_to("_topic", "cake")),
        recount.announce(COHOST, "there", set_to("_name", "tea")),
    ]
    run(world, 30)
    assert all(isinstance(world.network.answers[each], Announced) for each in asked)
    world.network.heal()
    run(world, 300)
    recount.check(*everybody(world))
    assert objects(world, HOST) == {"_name": b"tea", "_topic": b"cake"}


FOUND = (11, 15, 21, 36, 40)
"""These found something once: a device that opened a term twice, words out of order, a guest that
started over twice."""
SEEDS = tuple(range(60)) if os.environ.get("LINNET_SOAK") else (*range(3), *FOUND)
CASES = [
    *((Policy.PUBLIC, seed) for seed in SEEDS),
    *(
        (policy, seed)
        for policy in (Policy.ANONYMOUS, Policy.CLOSED, Policy.PRIVATE)
        for seed in SEEDS[: max(2, len(SEEDS) // 3)]
    ),
]
VOICES = (HOST, "guest0", "guest1")
GUESTS, LATE = 8, 3


class Schedule:
    """Splits, crashes and newcomers, drawn one after the other."""

    def __init__(self, world: PlacesWorld, luck: Random) -> None:
        self._world = world
        self._luck = luck
        self.down: str | None = None
        self.outside = list(world.guests[-LATE:])

    def act(self) -> None:
        """The next thing that happens."""
        world, luck = self._world, self._luck
        act = luck.choice(("split", "heal", "crash", "enter", "none"))
        if act == "split":
            side = luck.sample(everybody(world), 4)
            rest = [name for name in everybody(world) if name not in side]
            world.network.partition([[world.peer(name) for name in names] for names in (side, rest)])
        elif act == "heal":
            world.network.heal()
        elif act == "enter" and self.outside and self.outside[0] != self.down:
            world.ask(self.outside[0], self._entry())
            world.watch(self.outside.pop(0))
        elif act == "crash" and self.down is None:
            self.down = luck.choice(everybody(world))
            world.crash(self.down)
        elif self.down is not None:
            self._up()

    def end(self) -> None:
        """Everybody is there, and can reach everybody."""
        self._world.network.heal()
        if self.down is not None:
            self._up()
        run(self._world, 300)
        for name in self._world.guests[-LATE:]:
            self._world.obtain(name, self._entry(), Entered)
            self._world.watch(name)

    def _entry(self) -> EnterPlace:
        contacts = tuple(self._world.contact(name) for name in VOICES)
        return EnterPlace(self._world.place, contacts)

    def _up(self) -> None:
        assert self.down is not None
        self._world.restart(self.down)
        self.down = None


@pytest.mark.parametrize(("policy", "seed"), CASES)
def test_everything_that_was_said_is_there_once_and_in_each_speakers_order(policy: Policy, seed: int) -> None:
    world = shared_place(GUESTS, seed, cohosts=2, entered=GUESTS - LATE, policy=policy)
    luck = named_luck(seed, "schedule")
    schedule, recount = Schedule(world, luck), Recount(world)
    asked = dict[int, tuple[str, str]]()
    for number in range(14):
        schedule.act()
        name = luck.choice([each for each in VOICES if each != schedule.down])
        text = f"{name} {number}"
        modifiers, reset = drawn(luck, text)
        asked[recount.announce(name, text, *modifiers, reset=reset)] = (name, text)
        run(world, luck.uniform(6.0, 20.0))
    schedule.end()
    run(world, 300)
    recount.announce(HOST, "the last word")
    run(world, 60)
    line = heard(world, HOST)
    assert line[-1] == "the last word"
    assert len(set(line)) == len(line), "nothing twice"
    for name in everybody(world)[:-LATE]:
        assert heard(world, name) == line, name
    for name in everybody(world)[-LATE:]:
        own = heard(world, name)
        assert own == line[len(line) - len(own) :], name
        assert own, name
    # A crash may take a command that waited for its turn: whoever gave it was not told that it was said.
    answers = world.network.answers
    said = [each for request, each in asked.items() if isinstance(answers.get(request), Announced)]
    for name in VOICES:
        own = [text for speaker, text in said if speaker == name]
        assert [text for text in line if text in own] == own, name
    recount.check(*everybody(world))
    statuses = world.statuses(everybody(world))
    assert len({(each.term, each.guests) for each in statuses}) == 1
