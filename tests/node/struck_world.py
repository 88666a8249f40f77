"""Real nodes that faults of the open world can strike: behind proxies, with clocks and disks that fail.

What each way to subscribe does in it is said by a world of its own, as in `linnet.sim.nemesis.open_world`:
who takes part, what they do, and what a judge is told.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace
from tests.node import wrong_clock
from tests.node.killed_world import KilledWorld, configure
from tests.node.lasting_reader import UNREACHED, LastingReader
from tests.node.tcp_proxies import TcpProxies

from linnet.api.items import SubscribedView
from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock
from linnet.cli.play.nodes import LiveNode, _free_port
from linnet.core.ids import Contact, DeviceId
from linnet.core.spaces import is_expendable
from linnet.identity.addresses import contact_text, parse_hint
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.node.home import open_home
from linnet.sim.judges.verdict import Complaint
from linnet.sim.nemesis.faults import Cast

CALLS = 24
"""Calls to nodes that may be under way at once."""
SUBSCRIBES = 60.0
"""Seconds within which a subscription must be acknowledged at the beginning."""


class Taken(Struct, frozen=True):
    """Something that an application was handed: in which of its lives, and when."""

    life: int
    at: float
    item: object


class Recorder(LastingReader):
    """An application that writes down whatever it is handed."""

    def __init__(
        self,
        node: LiveNode,
        name: str,
        subscribe: Callable[[ControlClient], Iterator[object]],
        key: Callable[[object], Hashable | None],
        luck: Random,
        *,
        is_durable: bool = True,
    ) -> None:
        """`key` says by what an item is known as handled. What is not durable is over with its first life."""
        super().__init__(f"{node.name} ({name})", node, luck)
        self._subscribe = subscribe
        self._key = key
        self._is_durable = is_durable
        self.taken: list[Taken] = []
        self.asked = 0.0
        self.made: float | None = None
        """When it was acknowledged first."""
        self.ended: float | None = None
        """When it ended that is not durable."""

    def _items(self, reading: ControlClient) -> Iterator[object]:
        if self.made is None:
            self.asked = time.monotonic()
        elif not self._is_durable:
            self._ended.set()
            return
        try:
            for item in self._subscribe(reading):
                if self.made is None and isinstance(item, SubscribedView):
                    self.made = time.monotonic()
                yield item
        finally:
            if not self._is_durable and self.made is not None and self.ended is None:
                self.ended = time.monotonic()

    def _take(self, item: object) -> Hashable | None:
        self.taken.append(Taken(self.lives, time.monotonic(), item))
        return self._key(item)

    @property
    def by_life(self) -> list[tuple[list[object], set[bytes]]]:
        """What was handed over in each life, and of this what was acknowledged as handled."""
        lives: dict[int, tuple[list[object], set[bytes]]] = {}
        for each in list(self.taken):
            lives.setdefault(each.life, ([], set()))[0].append(each.item)
        for key, life in list(self.settled.items()):
            if isinstance(key, bytes) and life in lives:
                lives[life][1].add(key)
        return list(lives.values())


class StruckWorld(KilledWorld, ABC):
    """Nodes of one way to subscribe."""

    way: ClassVar[str]

    def __init__(
        self, directory: Path, names: Iterable[str], newcomers: Iterable[str], config: NodeConfig, seed: int
    ) -> None:
        self.seed = seed
        self.luck = Random(f"{self.way} {seed}")
        super().__init__(
            directory, (*names, *newcomers), config, (sys.executable, str(Path(wrong_clock.__file__)))
        )
        self.begun = time.monotonic()
        self.dead: dict[str, float] = {}
        self.paused: set[str] = set()
        self.absent: set[str] = set(newcomers)
        """Newcomers that have not come yet."""
        self.ahead: dict[str, float] = dict.fromkeys(self.nodes, 0.0)
        """By how many seconds clocks are ahead now."""
        self.was_wrong = False
        self.unfit: dict[str, list[float]] = {name: [] for name in self.nodes}
        """By node, the moments at which it did not run."""
        self.parted: list[float] = []
        """The moments at which there was a partition."""
        self.is_parted = self.is_over = False
        self.log: list[str] = []
        """What was done, and when."""
        self.damaged_units = 0
        self.readers: list[Recorder] = []
        self._calls = ThreadPoolExecutor(CALLS)
        self._under_way: list[Future[None]] = []
        self._doing: set[str] = set()
        """Nodes that are just started."""
        self._doings = threading.Lock()
        self._ended: Counter[str] = Counter()
        """How often each node was killed or stopped."""
        self._gate = threading.Lock()
        """Guards `_ended` and the proxies, which have to agree."""
        self._ports: dict[str, tuple[int, int]] = {}
        self.proxies = TcpProxies(self._processes, Random(f"proxies {seed}"))
        for name, node in self.nodes.items():
            wrong_clock.set_clock(node.home.path, 0.0)
            self._settle_at(name)

    # What ways say.

    @property
    @abstractmethod
    def cast(self) -> Cast:
        """Who may be struck."""

    @abstractmethod
    def set_up(self) -> None:
        """Bring everybody together."""

    @abstractmethod
    def act(self) -> None:
        """Somebody does something: the usual work."""

    @abstractmethod
    def change(self) -> None:
        """Somebody changes state, membership, or what it wants."""

    @abstractmethod
    def welcome(self, name: str) -> None:
        """Somebody new, whose node runs now, takes part."""

    @abstractmethod
    def finish(self) -> None:
        """The last words, when all is well again, that everybody must have."""

    @abstractmethod
    def judge(self) -> list[Complaint]:
        """What is not as it was promised."""

    @property
    @abstractmethod
    def acknowledged(self) -> int:
        """How much was said and acknowledged."""

    @property
    def handed(self) -> int:
        """How much applications were handed."""
        return sum(len(reader.taken) for reader in self.readers)

    # Nodes.

    def start(self, name: str) -> None:
        """Start a node and let others reach it; `Failure` if it did not come up, or was ended meanwhile.

        A start that waits its turn may be overtaken by a kill. The node must then not run behind a closed
        proxy, where nobody would ever reach it.
        """
        ended = self._ended[name]
        super().start(name)
        with self._gate:
            if self._ended[name] == ended:
                self.proxies.open(name, *self._ports[name])
                return
        super().kill(name)
        raise Failure(f"{name} was ended while it started")

    def kill(self, name: str) -> None:
        """See `KilledWorld.kill`."""
        self.paused.discard(name)
        self._close(name)
        super().kill(name)

    def stop(self, name: str) -> None:
        """End a node in good order."""
        self.unpause(name)
        self._close(name)
        self.nodes[name].stop()

    def _close(self, name: str) -> None:
        with self._gate:
            self._ended[name] += 1
            self.proxies.close(name)

    def start_these(self, names: Iterable[str]) -> None:
        """Start all of these, a few at once, and return when they are up."""
        for started in [self._calls.submit(self.start, name) for name in names]:
            started.result()

    def halt(self) -> None:
        """See `GuardedWorld.halt`."""
        self.is_over = True
        for name in list(self.paused):
            self.unpause(name)
        super().halt()
        self._calls.shutdown(wait=False, cancel_futures=True)
        self.proxies.end()

    def begin_start(self, name: str) -> None:
        """Start a node, without waiting for it."""
        with self._doings:
            if name in self._doing:
                return
            self._doing.add(name)

        def do() -> None:
            try:
                self.start(name)
            except UNREACHED as failure:
                self.note(f"{name} did not start: {failure}")
            else:
                self.note(f"{name} is up")
            finally:
                self._doing.discard(name)

        self.call(do)

    @property
    def is_starting(self) -> bool:
        """Whether any node is just started."""
        return bool(self._doing)

    def is_doing(self, name: str) -> bool:
        """Whether a node is just started."""
        return name in self._doing

    def note(self, what: str) -> None:
        """Remember what was done."""
        self.log.append(f"{time.monotonic() - self.begun:.1f} s: {what}")

    def is_up(self, name: str) -> bool:
        """Whether a node can be asked now."""
        return self.nodes[name].is_up and name not in self.paused and name not in self._doing

    def living(self, names: Iterable[str]) -> list[str]:
        """Those of these that can be asked now."""
        return [name for name in names if self.is_up(name)]

    def contact(self, name: str) -> str:
        """Where a node can be dialled, as users write it."""
        hint = parse_hint(f"127.0.0.1:{self._ports[name][0]}")
        return contact_text(Contact(self.nodes[name].peer, (hint,)))

    def device(self, name: str) -> DeviceId:
        """The short name of a node's device."""
        return open_home(self.nodes[name].home.path, wall_clock()).identity.card.device

    def look(self) -> None:
        """Note who is not fit now."""
        now = time.monotonic()
        if self.is_parted:
            self.parted.append(now)
        for name in self.nodes:
            if not self.is_up(name) or self.ahead[name]:
                self.unfit[name].append(now)

    def _processes(self) -> dict[str, int]:
        return {name: node.pid for name, node in self.nodes.items() if node.pid is not None}

    def _settle_at(self, name: str) -> None:
        """Give a node ports of its own: one where it listens, and one at which others find it."""
        here, there = self._ports[name] = (_free_port(), _free_port())

        def settled(config: NodeConfig) -> NodeConfig:
            addresses = {"listen": (f"127.0.0.1:{there}",), "advertise": (f"127.0.0.1:{here}",)}
            return replace(config, node=replace(config.node, **addresses))

        configure(self.nodes[name], settled)

    # Calls.

    def call(self, act: Callable[[], None]) -> None:
        """Do something without waiting for it; that a node does not answer is no failure."""

        def do() -> None:
            with contextlib.suppress(*UNREACHED):
                act()

        self._under_way.append(self._calls.submit(do))

    def await_calls(self, limit: float) -> None:
        """Wait for all that is under way; what raised something unexpected raises it here."""
        for call in self._under_way:
            call.result(limit)
        self._under_way = []

    def insist(self, act: Callable[[], bool]) -> None:
        """Do something again and again until it holds, or all is over."""

        def do() -> None:
            while not self.is_over:
                with contextlib.suppress(*UNREACHED):
                    if act():
                        return
                time.sleep(0.2)

        threading.Thread(target=do, daemon=True).start()

    def read(self, reader: Recorder) -> Recorder:
        """Let an application read."""
        self.readers.append(reader)
        self.let_read(reader)
        return reader

    # Faults that are not a start or a stop.

    def move(self, name: str) -> None:
        """From its next start on a node, which is down, is somewhere else."""
        self._settle_at(name)

    def pause(self, name: str) -> None:
        """SIGSTOP."""
        pid = self.nodes[name].pid
        if pid is not None and self.is_up(name):
            self.paused.add(name)
            os.kill(pid, signal.SIGSTOP)

    def unpause(self, name: str) -> None:
        """SIGCONT."""
        pid = self.nodes[name].pid
        if pid is not None and name in self.paused:
            os.kill(pid, signal.SIGCONT)
        self.paused.discard(name)

    def set_clock(self, name: str, ahead: float) -> None:
        """Let the clock of a node be wrong, or right again."""
        self.was_wrong = True
        self.ahead[name] = ahead
        wrong_clock.set_clock(self.nodes[name].home.path, ahead)

    def fill_disk(self, name: str, is_full: bool) -> None:
        """Let no file of a running node grow any more, or again."""
        pid = self.nodes[name].pid
        if pid is None or not self.nodes[name].is_up:
            return
        with contextlib.suppress(ProcessLookupError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 if is_full else hard, hard))

    def damage(self, name: str) -> None:
        """Flip a bit in each of a few events that a node, which is down, has kept, and of a few values.

        Values that a node cannot do without are left alone: it would not start until a copy is put back.
        """
        path = self.nodes[name].home.store
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            kept = db.execute("SELECT position, raw FROM unit ORDER BY position").fetchall()
            for position, raw in self.luck.sample(kept, min(len(kept), 3)):
                db.execute("UPDATE unit SET raw = ? WHERE position = ?", (self._flipped(raw), position))
                self.damaged_units += 1
            rows = db.execute("SELECT space, key, value FROM cell ORDER BY space, key").fetchall()
            spare = [row for row in rows if is_expendable(row[0]) and row[2]]
            for space, key, value in self.luck.sample(spare, min(len(spare), 3)):
                values = (self._flipped(value), space, key)
                db.execute("UPDATE cell SET value = ? WHERE space = ? AND key = ?", values)

    def _flipped(self, raw: bytes) -> bytes:
        at = self.luck.randrange(len(raw))
        return raw[:at] + bytes([raw[at] ^ (1 << self.luck.randrange(8))]) + raw[at + 1 :]

    def part(self, side: Iterable[str], *, silent: bool) -> None:
        """Let these reach nobody but each other."""
        self.is_parted = True
        self.proxies.part(side, silent=silent)

    def heal(self) -> None:
        """Let everyone reach everyone again."""
        self.proxies.heal()
        self.is_parted = False
