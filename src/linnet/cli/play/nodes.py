"""Real nodes for ``linnet play --live``: each is a ``linnet up`` with a home of its own."""

from __future__ import annotations

import contextlib
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from linnet.api.rooms import AskToJoin, ListMembers
from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock
from linnet.core.ids import PeerId, TopicId
from linnet.identity.addresses import parse_contact
from linnet.identity.text import person_text
from linnet.node import home as homes
from linnet.node.client import ControlClient, ControlError, NodeUnreachable
from linnet.node.config import NodeConfig, NodeSection, RelaySection, TraceSection
from linnet.node.config_reference import new_file
from linnet.rooms.commands import AddRelay, CreateRoom, SendToRoom, Sent, SetLevel, SetMembership, SetState
from linnet.rooms.config import RelayChoice, RelayPolicy
from linnet.rooms.event_types import Membership
from linnet.sim.rooms.traffic import Action, Do, Outcome, Played, Traffic, merge
from linnet.sim.rooms.world import FOUNDER, seed_for
from linnet.trace.jsonlines import read_trace
from linnet.trace.records import Level, Row

_TRACE = TraceSection(level=Level.FULL, max_bytes=256 * 1024 * 1024)
"""One file holds a whole run: no rows are rotated away."""

_READY_SECONDS = 40.0
_STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.2
_PORTS = range(20_000, 32_000)
_ports = islice(cycle(_PORTS), secrets.randbelow(len(_PORTS)), None)


class Ready(msgspec.Struct):
    """The line that ``linnet up --json`` prints when the node is ready."""

    address: str


class LiveNode:
    """A node in a process that can be stopped and started again."""

    def __init__(
        self,
        path: Path,
        relay: bool,
        base: NodeConfig | None = None,
        group: int | None = None,
        within: tuple[str, ...] = (),
    ) -> None:
        """The node is named as its home is, and configured as `base` says, with its own name, port and role.

        Its process belongs to the process group `group`. `within` are words before its command: a program
        that runs it in an environment of its own.
        """
        self.name = path.name
        self._within = within
        # A port of its own, so that others find it again after it was offline.
        section = NodeSection(label=self.name, listen=(f"127.0.0.1:{_free_port()}",))
        role = RelaySection(enabled=True, policy=RelayPolicy.OPEN, stamp_bits=0) if relay else RelaySection()
        self._config = replace(base or NodeConfig(), node=section, relay=role, trace=_TRACE)
        self._group = group
        opened = homes.init(path, wall_clock(), self._config)
        self.home = homes.Home(path)
        self.peer: PeerId = opened.identity.peer
        self.author = opened.identity.author
        self.address = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: ControlClient | None = None

    @property
    def person(self) -> str:
        """The id of the node's person, as users type it."""
        return person_text(self.author)

    @property
    def is_up(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id; None if it is stopped."""
        return None if self._process is None else self._process.pid

    @property
    def control(self) -> ControlClient:
        """The client of its control API; raises `Failure` if it is stopped."""
        if self._control is None:
            raise Failure(f"{self.name} is offline")
        return self._control

    def start(self) -> None:
        """Start the process, and return when the node is ready; does nothing if it runs."""
        if self.is_up:
            return
        command = [
            *self._within,
            sys.executable,
            "-m",
            "linnet.cli",
            "up",
            "--json",
            "--home",
            str(self.home.path),
        ]
        with (self.home.path / "stderr.txt").open("ab") as errors:
            process = self._process = subprocess.Popen(  # noqa: S603
                command, stdout=subprocess.PIPE, stderr=errors, process_group=self._group
            )
        line = process.stdout.readline() if process.stdout is not None else b""
        if not line:
            raise Failure(f"{self.name} did not start; look at {self.home.path / 'stderr.txt'}")
        self.address = msgspec.json.decode(line, type=Ready).address
        self._control = ControlClient(self.home.path)

    def stop(self) -> None:
        """Stop the process in good order, and kill it if it takes too long; does nothing if it is stopped."""
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def kill(self) -> None:
        """Kill the process by SIGKILL, and wait until nothing of it runs; does nothing if it is stopped."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
        self.stop()

    def prefer(self, seed: int) -> None:
        """Choose among relays by this seed, from the next start on."""
        rooms = replace(self._config.rooms, relay_choice=RelayChoice.RANDOM, relay_seed=seed)
        self._config = replace(self._config, rooms=rooms)
        self.home.config.write_text(new_file(self._config))

    def rows(self) -> Iterator[Row]:
        """Return the rows of the node's trace."""
        return read_trace(self.home.trace)


class LiveWorld:
    """The peers and relays of one room; all processes end with the block."""

    def __init__(self, directory: Path, peers: int, relays: int) -> None:
        names = (*(f"relay{n}" for n in range(relays)), *(f"peer{n}" for n in range(peers)))
        self.nodes = {name: LiveNode(directory / name, name.startswith("relay")) for name in names}
        self.room = TopicId(b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.ExitStack() as stack:
            for node in self.nodes.values():
                stack.callback(node.stop)

    @property
    def relays(self) -> list[LiveNode]:
        """The relays, in order."""
        return [node for name, node in self.nodes.items() if name.startswith("relay")]

    def set_up(self) -> None:
        """Start all nodes, create the room, name its relays, invite and join all peers."""
        for node in self.nodes.values():
            node.start()
        founder = self.nodes[FOUNDER]
        self.room = founder.control.ask(CreateRoom("play")).room
        for relay in self.relays:
            founder.control.ask(AddRelay(self.room, parse_contact(relay.address)))
        contacts = tuple(parse_contact(node.address) for node in (founder, *self.relays))
        for name, node in self.nodes.items():
            if name.startswith("peer") and node is not founder:
                founder.control.ask(SetMembership(self.room, node.author, Membership.INVITE))
                node.control.ask(AskToJoin(room=self.room, contacts=contacts))
        self._await_relays()

    def _await_relays(self) -> None:
        """Wait until the relays serve: a named relay fetches the control DAG and joins first."""
        until = wall_clock() + _READY_SECONDS
        while True:
            members = self.nodes[FOUNDER].control.ask(ListMembers(self.room)).members
            if sum(one.relay and one.membership is Membership.JOIN for one in members) >= len(self.relays):
                return
            if wall_clock() > until:
                raise Failure(f"not every relay has joined within {_READY_SECONDS:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def prefer(self, name: str, relay: str) -> None:
        """Let a peer choose this relay from its next start on."""
        relays = [node.peer for node in self.relays]
        self.nodes[name].prefer(seed_for(self.room, self.nodes[relay].peer, relays))


def _free_port() -> int:
    """Return a port that stays free while the node is down: none that outgoing connections are given."""
    for _ in _PORTS:
        port = next(_ports)  # Each once: the nodes of others may not be up yet.
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {_PORTS.start} to {_PORTS.stop - 1}")


SETTLE = 2.0
"""Seconds between the set-up and the first action."""

QUIET = 3.0
"""Seconds after the last action."""

Tell = Callable[[float, str], None]


def play_live(traffic: Traffic, directory: Path, tell: Tell) -> Played:
    """Play traffic on processes of this machine, with their homes in this directory."""
    with LiveWorld(directory, traffic.peers, traffic.relays) as world:
        tell(0.0, "nodes start, and meet in a room")
        world.set_up()
        for name, relay in traffic.relay_of.items():
            world.prefer(name, relay)
            world.nodes[name].stop()
            world.nodes[name].start()
        for name in traffic.away:
            world.nodes[name].stop()
        time.sleep(SETTLE)
        began = wall_clock()
        outcomes = _perform_all(traffic, world, began, tell)
        time.sleep(QUIET)
        end = wall_clock()
    names = {node.peer: name for name, node in world.nodes.items()}
    rows = [row for node in world.nodes.values() for row in node.rows()]
    relays = [node.peer for node in world.relays]
    log = merge(rows, names, relays, topic=world.room, begin=began, end=end)
    return Played(traffic, outcomes, log, None)


def _perform_all(traffic: Traffic, world: LiveWorld, began: float, tell: Tell) -> tuple[Outcome, ...]:
    outcomes: list[Outcome] = []
    for number, action in enumerate(traffic.actions):
        tell(number / len(traffic.actions), f"{action.do} {action.user}")
        at = wall_clock() - began
        events, refused = _perform(world, action)
        outcomes.append(Outcome(number, action.do, action.user, at, events, refused))
        time.sleep(action.pause)
    return tuple(outcomes)


def _perform(world: LiveWorld, action: Action) -> tuple[tuple[str, ...], str | None]:
    """Perform an action; return the events that it made, or why it was declined."""
    node = world.nodes[action.user]
    match action.do:
        case Do.ONLINE | Do.OFFLINE:
            _turn(node, action.do is Do.ONLINE)
        case Do.ONLINE_BATCH:
            for name in action.users:
                _turn(world.nodes[name], action.online)
        case Do.RESYNC_RELAY:
            world.prefer(action.user, action.relay or "")
        case _:
            if not node.is_up:
                return (), "crashed"
            try:
                sent = _said(world, node, action)
            except ControlError as error:
                return (), error.reason
            except NodeUnreachable as error:
                raise Failure(f"{action.user}: {error}") from error
            return tuple(event.hex() for event in sent.ids), None
    return (), None


def _turn(node: LiveNode, on: bool) -> None:
    if on:
        node.start()
    else:
        node.stop()


def _said(world: LiveWorld, node: LiveNode, action: Action) -> Sent:
    control, room = node.control, world.room
    person = None if action.target is None else world.nodes[action.target].author
    match action.do:
        case Do.MESSAGE:
            return control.ask(SendToRoom(room, (action.content.encode(),)))
        case Do.BAN if person is not None:
            return control.ask(SetMembership(room, person, Membership.BAN))
        case Do.POWER_LEVEL_EVENT:
            return control.ask(SetLevel(room, action.level, kind=action.kind))
        case Do.POWER_LEVEL_USER:
            return control.ask(SetLevel(room, action.level, person))
        case Do.STATE:
            return control.ask(SetState(room, action.kind or "", action.key, text=action.content))
        case _:
            raise ValueError(f"{action.do} is no command")
