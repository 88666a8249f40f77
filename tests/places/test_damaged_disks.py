"""Fragments that a disk gives back no more: those who have them are asked, whoever said them."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, announced, assert_one_line, heard, run, says, shared_place

from linnet.core.ids import EventId
from linnet.core.stores import Entry
from linnet.places.commands import Announce, Announced
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.store.memory import MemoryLog


def damage(world: PlacesWorld, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what says this be unreadable, until it is written again."""
    log = world.stores[name].log
    found = log.read(world.place, 0, 1000)
    (bad,) = (entry.head for _, entry in found if text.encode() in entry.raw)
    get, read, append = MemoryLog.get, MemoryLog.read, MemoryLog.append
    gone = {bad: None}

    def append_again(self: MemoryLog, entry: Entry) -> int | None:
        if self is log and entry.head in gone:
            del gone[entry.head]
            return None
        return append(self, entry)

    def get_sound(self: MemoryLog, head: EventId) -> Entry | None:
        return None if self is log and head in gone else get(self, head)

    def read_sound(self: MemoryLog, topic: bytes, after: int, limit: int) -> list[tuple[int, Entry]]:
        every = read(self, world.place, after, limit)
        return [each for each in every if self is not log or each[1].head not in gone]

    monkeypatch.setattr(MemoryLog, "append", append_again)
    monkeypatch.setattr(MemoryLog, "get", get_sound)
    monkeypatch.setattr(MemoryLog, "read", read_sound)


@pytest.mark.parametrize("cohosts", [0, 1])
@pytest.mark.parametrize("name", [HOST, "guest1"])
def test_what_a_disk_lost_is_had_from_others(
    name: str, cohosts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = shared_place(2, 3, cohosts=cohosts)
    for text in ("alpha", "beta", "gamma"):
        says(world, HOST, text)
    run(world, 10)
    world.crash(name)
    damage(world, name, "beta", monkeypatch)
    world.said.pop(name)
    world.restart(name)
    run(world, 60)
    assert heard(world, name) == ["alpha", "beta", "gamma"]


@pytest.mark.parametrize("name", [HOST, COHOST, "guest1"])
def test_the_line_goes_on_where_a_term_begins_behind_what_a_disk_lost(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = shared_place(2, 4)
    says(world, HOST, "alpha")
    says(world, COHOST, "beta")
    says(world, HOST, "gamma")
    run(world, 10)
    world.crash(name)
    damage(world, name, "beta", monkeypatch)
    world.said.pop(name)
    world.restart(name)
    if name != "guest1":
        says(world, name, "delta")
    run(world, 60)
    said = ["alpha", "beta", "gamma"] + ["delta"] * (name != "guest1")
    assert_one_line(world, said)


@pytest.mark.parametrize("lost", ["alpha", "beta", "gamma", "delta"])
@pytest.mark.parametrize("pause", [0.2, 2.0])
def test_what_is_said_to_who_missed_more_than_a_disk_lost_has_numbers_of_its_own(
    lost: str, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only one in reach cannot give back the end of a term, and says that the line ends before it."""
    world = shared_place(2, 4)
    announced(world, b"alpha")
    run(world, 5)
    world.crash("guest1")
    announced(world, b"beta")
    announced(world, b"gamma", by=COHOST)
    announced(world, b"delta")
    run(world, 10)
    for name in (HOST, COHOST):
        world.crash(name)
    damage(world, HOST, lost, monkeypatch)
    world.said.pop(HOST)
    world.restart(HOST)
    world.restart("guest1")
    run(world, 1)
    said = [f"zeta {number}" for number in range(4)]
    requests = []
    for text in said:
        requests.append(world.ask(HOST, Announce(world.place, "_message", body=text.encode())))
        run(world, pause)
    world.restart(COHOST)
    run(world, 120)
    answers = [world.network.answers[request] for request in requests]
    acknowledged = [text for text, each in zip(said, answers, strict=True) if isinstance(each, Announced)]
    numbers = [each.message for each in answers if isinstance(each, Announced)]
    assert len(set(numbers)) == len(numbers)
    assert_one_line(world, ["alpha", "beta", "gamma", "delta", *acknowledged])
