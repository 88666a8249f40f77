"""A simulated world that is not kind: nodes restart elsewhere, pause, lose their clock and their disk.

What each way to subscribe does in it is said by a world of its own: who takes part, what they do, and
what a judge is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import ClassVar

from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.limits import FRAME_BYTES
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity
from linnet.peer.interface import Effect, Input, NodeMachine, Promise, Result, Start
from linnet.sim.clock import START
from linnet.sim.judges.verdict import Complaint
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.luck import SeededEntropy, named_luck
from linnet.sim.named_nodes import NamedNodes
from linnet.sim.nemesis.budget import Account
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_node import DamageableStore, Disk, OpenMachine
from linnet.trace.sink import TraceSink

_LOOK = 1.0
"""Seconds between two looks for answers."""


class OpenWorld(NamedNodes):
    """Nodes over a network in which addresses count."""

    way: ClassVar[str]
    hints = ("sim://nowhere",)
    patience = 60.0
    step = 0.25
    quiet: ClassVar[float] = 240.0
    """Virtual seconds at the end, in which everything must come right."""

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, LinkModel(named_latency("constant:20")), trace)
        self.luck = named_luck(seed, f"nemesis/{self.way}")
        self.account = Account()
        self.network.on_commit = self._committed
        self.dead: dict[str, float] = {}
        """Who is dead for good, and since when."""
        self.failures: list[str] = []
        """Machines that raised an error, which ends a node."""
        self.damaged: dict[str, float] = {}
        self.offsets: dict[str, float] = {}
        """By how many seconds clocks are ahead now."""
        self.unfit: dict[str, list[float]] = {}
        """By node, the seconds at which it did not run."""
        self.parted: list[float] = []
        """The seconds at which there was a partition."""
        self.is_parted = False
        self.was_wrong = False
        """Whether any clock was wrong at any time: then lengths of time that nodes tell each other are."""
        self._moves: dict[str, int] = {}
        self._disks: dict[str, Disk] = {}
        self._kept: dict[str, DamageableStore] = {}

    # What ways say.

    @property
    def cast(self) -> Cast:
        """Who may be struck."""
        raise NotImplementedError

    def set_up(self) -> None:
        """Bring everybody together."""
        raise NotImplementedError

    def act(self) -> None:
        """Somebody does something: the usual work."""
        raise NotImplementedError

    def change(self) -> None:
        """Somebody changes state or membership."""
        raise NotImplementedError

    def welcome(self, name: str) -> None:
        """Somebody new comes."""
        raise NotImplementedError

    def revoke(self, name: str) -> None:
        """The owner of a device says that it is theirs no longer; the device goes on, and does its worst."""
        raise NotImplementedError

    def resume(self, name: str) -> None:
        """A node has started again: its application asks for what it wants."""
        raise NotImplementedError

    def note(self) -> None:
        """Look which answers have come."""
        raise NotImplementedError

    def finish(self) -> None:
        """The last words, when all is well again, that everybody must have."""
        raise NotImplementedError

    def judge(self) -> list[Complaint]:
        """What is not as it was promised."""
        raise NotImplementedError

    # Nodes.

    def add(self, names: Iterable[str]) -> None:
        """Nodes of these names, each at its own address."""
        names = tuple(names)
        regions = self.network.table.regions
        for number, name in enumerate(names, len(self.identities)):
            identity = self.identities[name] = self.identity(name)
            self.names[identity.peer] = name
            self.stores[name] = self._kept[name] = DamageableStore()
            self._disks[name] = Disk(self.stores[name], partial(self.kill, name))
            self.network.add(
                identity.peer,
                self.machine(name),
                region=regions[number % len(regions)],
                deliver=self.deliver,
                store=self._disks[name],
            )
            self.network.settle_at(identity.peer, self.address(name))

    def machine(self, name: str) -> NodeMachine:
        """The shipped machine, behind what may fail."""

        def fail(error: Exception) -> None:
            self.failures.append(f"{name} ended after {self.network.elapsed:.0f} s: {error!r}")
            self.kill(name)

        try:
            machine = super().machine(name)
        except Exception as error:  # it cannot even begin over what it has kept
            self.failures.append(f"{name} did not start: {error!r}")
            machine = _Broken()
        return OpenMachine(name, machine, self.account, fail, self.offsets.get(name, 0.0))

    def address(self, name: str) -> str:
        """Where a node is now, or will be when it starts."""
        return f"sim://{name}/{self._moves.get(name, 0)}"

    def contact(self, name: str) -> Contact:
        """Where a node may be dialled now."""
        return Contact(self.peer(name), (self.address(name),))

    def is_up(self, name: str) -> bool:
        """Whether a node runs and is not paused."""
        return self.is_online(name) and self._open(name).waiting is None

    def living(self, names: Iterable[str]) -> list[str]:
        """Those of these that run."""
        return [name for name in names if self.is_up(name)]

    def _committed(self, peer: PeerId, promises: tuple[Promise, ...], now: float) -> None:
        self.account.committed(self.names[peer], promises, now)

    def _open(self, name: str) -> OpenMachine:
        machine = self.network.machine(self.peer(name))
        if not isinstance(machine, OpenMachine):
            raise TypeError("a machine of another world")
        return machine

    # Faults.

    def kill(self, name: str, *, silent: bool = False) -> None:
        """Stop a node at once; what it has committed stays."""
        self.network.crash(self.peer(name), silent=silent)

    def stop(self, name: str) -> None:
        """Stop a node of which all that it wrote is durable: a real one commits at every turn of its loop."""
        self._disks[name].commit(lambda: None)
        self.kill(name)

    def start(self, name: str) -> None:
        """Start a node again over what it had kept, unless it runs or is dead."""
        if self.is_online(name) or name in self.dead:
            return
        self.network.restart(self.peer(name), self.machine(name))
        self.network.settle_at(self.peer(name), self.address(name))
        self.ask(name, Start())
        self.resume(name)

    def move(self, name: str) -> None:
        """From its next start on a node is somewhere else."""
        self._moves[name] = self._moves.get(name, 0) + 1

    def pause(self, name: str) -> None:
        """Let a node not run; its links stay, and what comes waits."""
        if self.is_up(name):
            self._open(name).waiting = []

    def unpause(self, name: str) -> None:
        """Let a node run again."""
        machine = self._open(name)
        if machine.waiting is not None:
            waiting, machine.waiting = machine.waiting, None
            if self.is_online(name):
                self.network.hand(self.peer(name), waiting)

    def set_clock(self, name: str, offset: float) -> None:
        """Let a node's clock be wrong, or right again, from now on."""
        self.was_wrong = True
        self.offsets[name] = offset
        self._open(name).offset = offset

    def fill_disk(self, name: str, is_full: bool) -> None:
        """Let there be no room on a disk any more, or again."""
        self._disks[name].is_full = is_full

    def damage(self, name: str) -> None:
        """Let a part of what a node, which is down, has kept be unreadable."""
        self.damaged[name] = self.network.elapsed
        self._kept[name].log.damage(named_luck(self.seed, f"damage/{name}"))

    # Applications.

    def obtained(self, request: int) -> Result | None:
        """The answer to a command, if it is here."""
        return self.network.answers.get(request)

    def run(self, seconds: float) -> None:
        """Let time pass, and look now and then which answers have come."""
        until = self.network.elapsed
        end = until + seconds
        # What was asked for decides, not the clock: that rounds, and may stay below the end for good.
        while until < end:
            until = min(end, until + _LOOK)
            self.network.run(until)
            self.note()
            self._look(until)

    def _look(self, now: float) -> None:
        if self.is_parted:
            self.parted.append(now)
        for name in self.identities:
            if not self.is_up(name):
                self.unfit.setdefault(name, []).append(now)

    def part(self, names: Iterable[str], *, silent: bool) -> None:
        """Let these reach nobody but each other."""
        there = [self.peer(name) for name in names]
        here = [peer for peer in self.names if peer not in there]
        self.network.partition([here, there], silent=silent)
        self.is_parted = True

    def part_all(self) -> None:
        """Let nobody reach anybody, and nobody be told."""
        self.network.partition([[peer] for peer in self.names], silent=True)
        self.is_parted = True

    def heal(self) -> None:
        """Let everyone reach everyone again."""
        self.network.heal()
        self.is_parted = False


class _Broken:
    """A node that does not start."""

    hello = Hello(WIRE_VERSION, WIRE_VERSION, {}, (), FRAME_BYTES, (), "broken")

    def handle(self, event: Input, now: float) -> list[Effect]:
        """It does nothing."""
        return []


def second_device(seed: int, owner: str, name: str) -> Identity:
    """Another device of a person of `seeded_identity`, whose first device bears another name."""
    from linnet.identity.cards import CARD_DAYS, issue_card

    person = person_key(seed, owner)
    device = SigningKey.generate(SeededEntropy(seed, f"identity/{owner}/{name}"))
    first = int(START)
    return Identity(device, issue_card(person, device.public, first, first + CARD_DAYS * 86_400, name))


def person_key(seed: int, owner: str) -> SigningKey:
    """The key of a person of `seeded_identity`."""
    return SigningKey.generate(SeededEntropy(seed, f"identity/{owner}"))


def pick(luck: Random, names: list[str]) -> str | None:
    """One of these, if there is one."""
    return luck.choice(names) if names else None
