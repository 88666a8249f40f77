"""Real nodes for ``linnet play --live``: each is a ``linnet up`` with a home of its own."""

from __future__ import annotations

import contextlib
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import replace

from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock
from linnet.core.ids import PeerId, TopicId
from linnet.identity.text import Sort, from_text, to_text
from linnet.node import home as homes
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig, NodeSection, RelaySection, TraceSection
from linnet.node.config_reference import new_file
from linnet.node.room_types import CreateRoomRequest, JoinRoomRequest
from linnet.rooms.config import RelayChoice, RelayPolicy
from linnet.rooms.content import Membership
from linnet.sim.rooms_world import FOUNDER, seed_for
from linnet.trace.reading import read_trace
from linnet.trace.records import Level, Row

_TRACE = TraceSection(level=Level.FULL, max_bytes=256 * 1024 * 1024)
"""One file holds a whole run: nothing of it is rotated away."""

_READY_SECONDS = 40.0
_STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.2
_PORTS = range(20_000, 32_000)
_ports = islice(cycle(_PORTS), secrets.randbelow(len(_PORTS)), None)


class Ready(msgspec.Struct):
    """What ``linnet up --json`` says when it is up."""

    address: str


class LiveNode:
    """One process, which can be stopped and started again."""

    def __init__(
        self,
        name: str,
        path: Path,
        relay: bool,
        base: NodeConfig | None = None,
        group: int | None = None,
        within: tuple[str, ...] = (),
    ) -> None:
        """Configured as `base` says beside its name, port and role; its process is of this group.

        `within` are words before its command: a program that runs it in a place of its own.
        """
        self.name = name
        self._within = within
        # A port of its own, so that others find it again after it was away.
        section = NodeSection(label=name, listen=(f"127.0.0.1:{_free_port()}",))
        role = RelaySection(enabled=True, policy=RelayPolicy.OPEN) if relay else RelaySection()
        self._config = replace(base or NodeConfig(), node=section, relay=role, trace=_TRACE)
        self._group = group
        opened = homes.init(path, wall_clock(), self._config)
        self._path = path
        self.home = homes.Home(path)
        self.peer: PeerId = opened.identity.peer
        self.person = to_text(Sort.PERSON, opened.identity.author)
        self.address = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: ControlClient | None = None

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """Its process; None if it is stopped."""
        return None if self._process is None else self._process.pid

    @property
    def control(self) -> ControlClient:
        """Its control API; `Failure` if it is stopped."""
        if self._control is None:
            raise Failure(f"{self.name} is offline")
        return self._control

    def start(self) -> None:
        """Run it, and return when it is up. If it is, this does nothing."""
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
            str(self._path),
        ]
        with (self._path / "stderr.txt").open("ab") as errors:
            process = self._process = subprocess.Popen(  # noqa: S603
                command, stdout=subprocess.PIPE, stderr=errors, process_group=self._group
            )
        line = process.stdout.readline() if process.stdout is not None else b""
        if not line:
            raise Failure(f"{self.name} did not start; look at {self._path / 'stderr.txt'}")
        self.address = msgspec.json.decode(line, type=Ready).address
        self._control = ControlClient(self._path)

    def stop(self) -> None:
        """End it in good order; whoever takes too long is killed. Again does nothing."""
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
        """SIGKILL: nothing of it runs any more when this returns. If it is stopped, this does nothing."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
        self.stop()

    def prefer(self, seed: int) -> None:
        """Choose among relays by this seed, from its next start on."""
        rooms = replace(self._config.rooms, relay_choice=RelayChoice.RANDOM, relay_seed=seed)
        self._config = replace(self._config, rooms=rooms)
        self.home.config.write_text(new_file(self._config))

    def rows(self) -> Iterator[Row]:
        """What it has recorded."""
        return read_trace(self.home.trace)


class LiveWorld:
    """The peers and relays of one room; all processes end with the block."""

    def __init__(
        self,
        directory: Path,
        peers: int,
        relays: int,
        base: NodeConfig | None = None,
        group: int | None = None,
    ) -> None:
        """See `LiveNode` for the last two."""
        self.nodes = {
            name: LiveNode(name, directory / name, name.startswith("relay"), base, group)
            for name in (*(f"relay{n}" for n in range(relays)), *(f"peer{n}" for n in range(peers)))
        }
        self.room = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.ExitStack() as stack:
            for node in self.nodes.values():
                stack.callback(node.stop)

    @property
    def relays(self) -> list[LiveNode]:
        """The relays, in their order."""
        return [node for name, node in self.nodes.items() if name.startswith("relay")]

    @property
    def topic(self) -> TopicId:
        """The room."""
        return TopicId(from_text(Sort.TOPIC, self.room))

    def set_up(self) -> None:
        """Start everybody, found the room, name its relays, invite and join all peers."""
        for node in self.nodes.values():
            node.start()
        founder = self.nodes[FOUNDER]
        self.room = founder.control.create_room(CreateRoomRequest("play")).room
        for relay in self.relays:
            founder.control.add_relay(self.room, relay.address)
        contacts = tuple(node.address for node in (founder, *self.relays))
        for name, node in self.nodes.items():
            if name.startswith("peer") and node is not founder:
                founder.control.set_membership(self.room, node.person, Membership.INVITE)
                node.control.join_room(JoinRoomRequest(room=self.room, contacts=contacts))
        self._await_relays()

    def _await_relays(self) -> None:
        """A relay that has been named fetches the control DAG and joins; from then on it serves."""
        until = wall_clock() + _READY_SECONDS
        while True:
            members = self.nodes[FOUNDER].control.room_members(self.room).members
            if sum(one.relay and one.membership is Membership.JOIN for one in members) >= len(self.relays):
                return
            if wall_clock() > until:
                raise Failure(f"not every relay has joined within {_READY_SECONDS:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def prefer(self, name: str, relay: str) -> None:
        """Let a peer choose this relay from its next start on."""
        relays = [node.peer for node in self.relays]
        self.nodes[name].prefer(seed_for(self.topic, self.nodes[relay].peer, relays))


def _free_port() -> int:
    """A port that stays free while the node is down: none of those that systems give to who dials."""
    for _ in _PORTS:
        port = next(_ports)  # Each once: the nodes of others may not be up yet.
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {_PORTS.start} to {_PORTS.stop - 1}")
