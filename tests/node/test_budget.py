"""What real processes cost while nothing happens, and while those that they rely on are gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Hashable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import pytest
from msgspec.structs import replace
from tests.node.content_world import MatchReader
from tests.node.killed_world import KilledWorld, bootstraps, configure
from tests.node.lasting_reader import LastingReader

from linnet.api.places import AskToEnter, OpenPlace
from linnet.api.rooms import AskToJoin
from linnet.cli.play.nodes import LiveNode
from linnet.identity.addresses import parse_contact
from linnet.node.client import ControlClient
from linnet.node.config import ContentSection, KademliaSection, NodeConfig, StorageSection, TrackerSection
from linnet.places.commands import Entered
from linnet.places.deed import Policy
from linnet.rooms.commands import AddRelay, CreateRoom, SendToRoom, SetMembership
from linnet.rooms.event_types import Membership
from linnet.sim.nemesis.budget import DIALS
from linnet.sim.nemesis.course import RESTARTED
from linnet.streams.commands import Publish, Subscribe

IS_SOAK = bool(os.environ.get("LINNET_SOAK"))
SETTLED = 5.0
"""Seconds after which nodes have done what a change makes them do at once."""
SPAN = 60.0 if IS_SOAK else 10.0
"""Seconds for which processes are watched."""
SHARE = 0.1
"""The most of one core that a node may take for itself while nobody wants anything of it."""
LIVES = 36
TREE = KademliaSection(enabled=True)
DEFAULT = NodeConfig(kademlia=TREE, content=ContentSection(enabled=True))
"""Nodes as their users have them, with all four ways to subscribe."""
RELAY, HOST = "relay0", "host"
GUESTS = ("guest0", "guest1")
STREAM = "weather"


class StreamReader(LastingReader):
    """Reads a stream durably."""

    def __init__(self, node: LiveNode) -> None:
        super().__init__(f"{node.name} reads", node, Random(node.name))

    def _items(self, reading: ControlClient) -> Iterator[object]:
        return reading.lines(Subscribe(0, STREAM, 0.0, "application"), manual=True)

    def _take(self, item: object) -> Hashable | None:
        return repr(item)


class EveryWay(KilledWorld):
    """A relay that is the tracker and keeps the stream, a host, and two guests, who use all four ways."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, (RELAY, HOST, *GUESTS), DEFAULT)
        known = bootstraps(self.nodes)
        (tracker,) = [text for text in known[HOST] if text not in known[RELAY]]
        for name, node in self.nodes.items():
            configure(
                node, partial(_in_network, tracker=tracker, table=known[name], is_tracker=name == RELAY)
            )

    def set_up(self) -> None:
        """Start everybody; a room, a place, a stream and content, in which all take part."""
        self.start_all()
        host, relay = self.nodes[HOST].control, self.nodes[RELAY]
        room = host.ask(CreateRoom("tea")).room
        host.ask(AddRelay(room, parse_contact(relay.address)))
        place = host.ask(OpenPlace(Policy.PUBLIC, "tea")).address.text
        for name in GUESTS:
            guest = self.nodes[name]
            host.ask(SetMembership(room, guest.author, Membership.INVITE))
            contacts = tuple(map(parse_contact, (self.nodes[HOST].address, relay.address)))
            guest.control.ask(AskToJoin(room=room, contacts=contacts))
            assert isinstance(guest.control.ask(AskToEnter(place, patience=60.0)), Entered)
            wanted = MatchReader(guest, "weather/rain[5,)", Random(name))
            read = StreamReader(guest)
            self.let_read(read, wanted)
            guest.control.ask(Publish(STREAM, (b"rain",), 10.0))
            guest.control.ask(SendToRoom(room, (b"hello",)))


def _in_network(config: NodeConfig, tracker: str, table: tuple[str, ...], is_tracker: bool) -> NodeConfig:
    return replace(
        config,
        node=replace(config.node, trackers=(tracker,)),
        tracker=TrackerSection(enabled=is_tracker),
        storage=(StorageSection(STREAM),) if is_tracker else (),
        kademlia=replace(TREE, bootstrap=table),
    )


def seconds_of(pid: int) -> float:
    """Processor time that a process has taken, in user and in system mode (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shares(pids: dict[str, int], span: float) -> dict[str, float]:
    """Which share of one core each of these takes for so long from now on."""
    begun, before = time.monotonic(), {name: seconds_of(pid) for name, pid in pids.items()}
    time.sleep(span)  # What is measured is what happens while nobody waits for anything.
    took = time.monotonic() - begun
    return {name: (seconds_of(pid) - before[name]) / took for name, pid in pids.items()}


def running(world: KilledWorld) -> dict[str, int]:
    return {name: node.pid for name, node in world.nodes.items() if node.pid is not None}


def test_a_process_that_never_rests_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            time.sleep(0.2)
            assert shares({"busy": busy.pid}, 1.0)["busy"] > SHARE
        finally:
            busy.kill()


# A node's clients are closed while other threads wait in them for an answer that a killed node never gives.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(300)
def test_nodes_take_next_to_no_processor_time_in_quiet_and_in_broken_situations(tmp_path: Path) -> None:
    with EveryWay(tmp_path) as world:
        world.set_up()
        time.sleep(SETTLED)
        quiet = shares(running(world), SPAN)
        world.kill(RELAY)
        one_away = shares(running(world), SPAN)
        world.kill(HOST)
        world.kill(GUESTS[1])
        alone = shares(running(world), SPAN)
    print(f"shares of a core: quiet {quiet}, relay and tracker away {one_away}, alone {alone}")
    assert set(quiet) == {RELAY, HOST, *GUESTS}
    assert set(alone) == {GUESTS[0]}
    for situation in (quiet, one_away, alone):
        assert max(situation.values()) < SHARE, situation


class Deaf:
    """Somebody at an address of this machine who hangs up at once, and notes when a call came."""

    def __init__(self, address: str) -> None:
        self.calls: list[float] = []
        self._server = socket.socket()
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._server.bind(("127.0.0.1", int(address.rpartition(":")[2])))
        self._server.listen()
        self._thread = threading.Thread(target=self._answer)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _answer(self) -> None:
        while True:
            try:
                call, _ = self._server.accept()
            except OSError:  # it was shut
                return
            self.calls.append(time.monotonic())
            call.close()


def most_a_minute(calls: list[float]) -> int:
    return max((sum(at <= each < at + 60.0 for each in calls) for at in calls), default=0)


# Few lives tell nothing on a busy machine; tests/sim/nemesis/test_budget.py has it simulated.
@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(900)
def test_a_process_that_is_killed_every_five_seconds_does_not_dial_the_dead_more_often(
    tmp_path: Path,
) -> None:
    with KilledWorld(tmp_path, (HOST, GUESTS[0]), NodeConfig()) as world:
        world.start_all()
        host, guest = world.nodes[HOST], world.nodes[GUESTS[0]]
        place = host.control.ask(OpenPlace(Policy.PUBLIC, "tea")).address.text
        assert isinstance(guest.control.ask(AskToEnter(place, patience=60.0)), Entered)
        address = host.address
        world.kill(HOST)
        with Deaf(address) as deaf:
            for _ in range(LIVES):
                world.start(guest.name)
                time.sleep(RESTARTED)  # A life lasts so long, however long its start took.
                world.kill(guest.name)
            lives = len(deaf.calls)
            world.start(guest.name)
            time.sleep(SPAN)
    print(f"{lives} dials in {LIVES} lives, {len(deaf.calls)} in all, {most_a_minute(deaf.calls)} a minute")
    assert 0 < most_a_minute(deaf.calls) <= DIALS
