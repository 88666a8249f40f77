"""A node that fails at any of its commits: what it said it has done is done, and nothing is done twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import pytest
from tests.rooms.circle import Circle

from linnet.core.ids import EventId
from linnet.event.event import Event
from linnet.peer.interface import AnyCommand
from linnet.rooms.commands import SendToRoom, Sent, SetLevel, SetMembership, SetState
from linnet.rooms.event_types import NAME, Membership
from linnet.rooms.room_status import state_of
from linnet.store.memory import MemoryStore

STEP = 1 if os.environ.get("LINNET_SOAK") else 4
NAMES = ("ann", "bob", "cid")


class PowerCut(Exception):
    """The node is gone in the middle of what it did."""


class FragileStore(MemoryStore):
    """Fails once, at a commit of which nothing more is performed: before it, or just after."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        self.fails_at: int | None = None
        self.keeps = True

    def commit(self, done: Callable[[], None]) -> None:
        self.commits += 1
        if self.commits != self.fails_at:
            super().commit(done)
            return
        if self.keeps:
            super().commit(lambda: None)
        raise PowerCut


class Script(Circle):
    """Three people and a relay; one of them fails."""

    def __init__(self) -> None:
        super().__init__(*NAMES, "r0", seed=3)
        self.requests: list[tuple[str, int]] = []
        self.sent: list[EventId] = []
        self.broken = ""

    def _store(self) -> MemoryStore:
        return FragileStore()

    def fragile(self, name: str) -> FragileStore:
        store = self.stores[name]
        assert isinstance(store, FragileStore)
        return store

    def break_at(self, name: str, commit: int, keeps: bool) -> None:
        store = self.fragile(name)
        store.keeps = keeps
        store.fails_at = store.commits + commit
        self.broken = name

    def run(self, seconds: float) -> None:
        end = self.network.elapsed + seconds
        while True:
            try:
                self.network.run(end)
            except PowerCut:
                self.network.crash(self.peer(self.broken))
            else:
                return

    def tell(self, name: str, command: AnyCommand) -> None:
        self.requests.append((name, self.network.ask(self.peer(name), command)))

    def play(self) -> None:
        """Something of everything, much of it at the same time."""
        room, person = self.room, self.person
        self.tell("bob", SendToRoom(room, (b"one", b"two")))
        self.tell("ann", SendToRoom(room, (b"three",)))
        self.run(0.4)
        self.tell("ann", SetLevel(room, 50, person=person("bob")))
        self.tell("cid", SendToRoom(room, (b"four",)))
        self.run(1.0)
        self.tell("bob", SetState(room, NAME, "", b"coffee"))
        self.tell("ann", SetState(room, NAME, "", b"milk"))
        self.run(0.3)
        self.tell("bob", SetMembership(room, person("cid"), Membership.BAN))
        self.tell("cid", SendToRoom(room, (b"five",)))
        self.run(2.0)
        self.tell("bob", SetMembership(room, person("cid"), Membership.LEAVE))
        self.tell("ann", SendToRoom(room, (b"six", b"seven", b"eight")))
        self.run(1.0)

    def finish(self, broken: str) -> None:
        """The node comes back, and all are there for a while; then it says something."""
        if not self.network.is_up(self.peer(broken)):
            self.online(broken)
        self.run(45.0)
        self.tell(broken, SendToRoom(self.room, (b"last",)))
        self.run(15.0)
        for name, request in self.requests:
            answer = self.network.answers.get(request)
            if name != "cid" and isinstance(answer, Sent):  # who is put out
                self.sent += answer.ids


def script() -> Script:
    play = Script()
    play.found("ann", "bob", "cid", "r0")
    return play


@cache
def commits_of(name: str) -> int:
    play = script()
    before = play.fragile(name).commits
    play.play()
    play.run(5.0)
    return play.fragile(name).commits - before


def check(play: Script, broken: str) -> None:
    rooms = [play.room_at("ann"), play.room_at("bob")]
    known = [frozenset(room.dag.ids_in_order()) for room in rooms]
    assert known[0] == known[1]
    assert state_of(rooms[0]).digest == state_of(rooms[1]).digest
    assert all(event in known[0] for event in play.sent), "it said that it had sent this"
    chains: dict[tuple[bytes, bytes, int | None], EventId] = {}
    for each in sorted(known[0]):
        event = rooms[0].memory.event(each)
        assert event is not None
        place = (event.author, event.device, event.seq)
        assert chains.setdefault(place, each) == each, "one place in a chain, two events"
    for name, room in zip(("ann", "bob"), rooms, strict=True):
        assert len(room.intake.order) == 0
        handed = {item.id for item in play.items[name] if isinstance(item, Event)}
        for each in known[0]:
            event = room.memory.event(each)
            if event is not None and event.kind == "message" and each not in room.memory.hidden:
                assert each in handed, f"{name} was not handed {event.body!r}"
    said = [item.body for item in play.items["bob"] if isinstance(item, Event)]
    assert b"last" in said, f"{broken} goes on"


@pytest.mark.parametrize("keeps", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("broken", ["ann", "bob"])
def test_a_node_may_fail_at_any_commit(broken: str, keeps: bool) -> None:
    commits = commits_of(broken)
    assert commits > 20
    for commit in range(1 + keeps, commits + 1, STEP):
        play = script()
        play.break_at(broken, commit, keeps)
        play.play()
        play.finish(broken)
        check(play, broken)
