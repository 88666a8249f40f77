"""A hostile simulated world: nodes restart elsewhere, pause, lose their clock and their disk.

Each way to subscribe has a world of its own, which defines who takes part, what they do, and what the judge
gets.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import ClassVar

from linnet.core.errors import CellsDamaged
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.limits import FRAME_BYTES
from linnet.identity.cards import CARD_DAYS, Revocation, issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity
from linnet.peer.interface import Effect, Input, NodeMachine, Promise, Start
from linnet.sim.clock import START
from linnet.sim.judges.verdict import Complaint
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.named_nodes import NamedNodes
from linnet.sim.nemesis.budget import Account
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_node import DamageableStore, Disk, OpenMachine
from linnet.sim.seeded_random import SeededEntropy, named_luck
from linnet.sim.wires import Durable
from linnet.trace.records import TraceSink

_LOOK = 1.0
"""Seconds between two checks for answers."""
_CELLS = 3
"""Values of a store that a bad disk alters, beside a unit of its log."""
_AGAIN = 5.0
"""Seconds until a node that refused to start is started again, with a copy of the damaged values."""


class OpenWorld(NamedNodes):
    """Nodes over a network in which addresses matter."""

    way: ClassVar[str]
    thief: ClassVar[str]
    """The node that has a second device of another person, which is revoked."""
    robbed: ClassVar[str]
    """The owner of that device."""
    hints = ("sim://nowhere",)
    patience = 60.0
    step = 0.25
    quiet: ClassVar[float] = 240.0
    """Virtual seconds at the end, in which every problem must be resolved."""

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, LinkModel(named_latency("constant:20")), trace)
        self.luck = named_luck(seed, f"nemesis/{self.way}")
        self.account = Account()
        self.network.on_commit = self._committed
        self.dead: dict[str, float] = {}
        """Nodes that are dead for good, and since when."""
        self.failures: list[str] = []
        """Errors raised by machines, which end their nodes."""
        self.refusals: list[CellsDamaged] = []
        """Errors of nodes that ended because a value that they need is damaged."""
        self.is_calm = False
        """Whether faults are over: a node that refuses to start is then started again with a copy put
        back."""
        self.damaged: dict[str, float] = {}
        self.offsets: dict[str, float] = {}
        """The seconds by which clocks are ahead now."""
        self.unfit: dict[str, list[float]] = {}
        """By node, the seconds at which it did not run."""
        self.parted: list[float] = []
        """The seconds at which there was a partition."""
        self.is_parted = False
        self.was_wrong = False
        """Whether any clock was ever wrong: then durations that nodes tell each other are wrong, too."""
        self._moves: dict[str, int] = {}
        self._disks: dict[str, Disk] = {}
        self._kept: dict[str, DamageableStore] = {}

    # What ways say.

    @property
    def cast(self) -> Cast:
        """The nodes that faults may strike."""
        raise NotImplementedError

    def set_up(self) -> None:
        """Bring all nodes together."""
        raise NotImplementedError

    def act(self) -> None:
        """Do one piece of the usual work at a random node."""
        raise NotImplementedError

    def change(self) -> None:
        """Change state or membership."""
        raise NotImplementedError

    def welcome(self, name: str) -> None:
        """Let a newcomer join."""
        raise NotImplementedError

    def revoke(self, name: str) -> None:
        """Let the owner of a device revoke it; the device goes on, and does its worst."""
        raise NotImplementedError

    def resume(self, name: str) -> None:
        """Resume a node's applications after its restart."""
        raise NotImplementedError

    def note(self) -> None:
        """Take note of answers that have arrived."""
        raise NotImplementedError

    def finish(self) -> None:
        """Let all nodes publish last messages, which every node must get, once all faults are over."""
        raise NotImplementedError

    def judge(self) -> list[Complaint]:
        """Return all broken promises."""
        raise NotImplementedError

    # Nodes.

    def add(self, names: Iterable[str]) -> None:
        """Add nodes of these names, each at its own address."""
        names = tuple(names)
        super().add(names)
        for name in names:
            self.network.settle_at(self.peer(name), self.address(name))

    def durable(self, name: str) -> Durable:
        """Return a disk that may be full or go bad."""
        self.stores[name] = self._kept[name] = DamageableStore()
        disk = self._disks[name] = Disk(self.stores[name], partial(self.kill, name))
        return disk

    def identity(self, name: str) -> Identity:
        """Return the identity of a node; the thief's is a second device of a person of `seeded_identity`."""
        if name != self.thief:
            return super().identity(name)
        device = SigningKey.generate(SeededEntropy(self.seed, f"identity/{self.robbed}/{name}"))
        first = int(START)
        until = first + CARD_DAYS * 86_400
        person = person_key(self.seed, self.robbed)
        return Identity(device, issue_card(person, device.public, first, until, name))

    def revocation_of(self, name: str) -> Revocation:
        """Return the owner's revocation of a device."""
        device = self.identities[name].card.device
        return revoke(person_key(self.seed, self.robbed), device, int(self.network.now))

    def machine(self, name: str) -> NodeMachine:
        """Return the shipped machine, wrapped so that it may fail."""

        def fail(error: Exception) -> None:
            if isinstance(error, CellsDamaged):
                self._put_back(name, error)
                if self.is_calm:
                    self.network.at(self.network.elapsed + _AGAIN, lambda: self.start(name))
            else:
                self.failures.append(f"{name} ended after {self.network.elapsed:.0f} s: {error!r}")
            self.kill(name)

        try:
            machine = super().machine(name)
        except CellsDamaged as error:
            self._put_back(name, error)
            return self.machine(name)
        except Exception as error:  # it cannot even begin over its store
            self.failures.append(f"{name} did not start: {error!r}")
            machine = _Broken()
        return OpenMachine(name, machine, self.account, fail, self.offsets.get(name, 0.0))

    def address(self, name: str) -> str:
        """Return the address of a node, now or from its next start."""
        return f"sim://{name}/{self._moves.get(name, 0)}"

    def contact(self, name: str) -> Contact:
        """Return the key and present address of a node."""
        return Contact(self.peer(name), (self.address(name),))

    def is_up(self, name: str) -> bool:
        """Return whether a node runs and is not paused."""
        return self.is_online(name) and self._open(name).waiting is None

    def living(self, names: Iterable[str]) -> list[str]:
        """Return those of these nodes that run."""
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
        """Stop a node at once; its committed writes stay."""
        self.network.crash(self.peer(name), silent=silent)

    def stop(self, name: str) -> None:
        """Commit a node's writes and stop it: a real node commits at every turn of its loop."""
        self._disks[name].commit(lambda: None)
        self.kill(name)

    def start(self, name: str) -> None:
        """Start a node again over its store, unless it runs or is dead."""
        if self.is_online(name) or name in self.dead:
            return
        self.network.restart(self.peer(name), self.machine(name))
        self.network.settle_at(self.peer(name), self.address(name))
        self.ask(name, Start())
        self.resume(name)

    def move(self, name: str) -> None:
        """Give a node another address from its next start on."""
        self._moves[name] = self._moves.get(name, 0) + 1

    def pause(self, name: str) -> None:
        """Pause a node; its links stay, and its inputs wait."""
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
        """Make a node's clock wrong, or right again, from now on."""
        self.was_wrong = True
        self.offsets[name] = offset
        self._open(name).offset = offset

    def fill_disk(self, name: str, is_full: bool) -> None:
        """Let a disk be full, or have room again."""
        self._disks[name].is_full = is_full

    def damage(self, name: str) -> None:
        """Damage a unit and values in the store of a node that is down, and values of another node."""
        self.damaged[name] = self.network.elapsed
        self._kept[name].log.damage(named_luck(self.seed, f"damage/{name}"))
        luck = named_luck(self.seed, f"damage of cells/{name}")
        other = luck.choice([each for each in self.cast.nodes if each != name])
        for struck in (name, other):
            for _ in range(_CELLS):
                self._kept[struck].cells.damage(luck)

    def _put_back(self, name: str, damage: CellsDamaged) -> None:
        """Put back a copy of damaged values, as a node asks for that cannot go on without them."""
        self.refusals.append(damage)
        self._kept[name].rollback()
        self._kept[name].cells.put_back(damage.space, damage.keys)

    # Applications.

    def obtained(self, request: int) -> object | None:
        """Return the answer to a command, if it has arrived."""
        return self.network.answers.get(request)

    def run(self, seconds: float) -> None:
        """Let time pass, and check for answers now and then."""
        until = self.network.elapsed
        end = until + seconds
        # Steps by the requested time, not by the clock, which is rounded and may never reach the end.
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
        """Cut these nodes off from all others."""
        there = [self.peer(name) for name in names]
        here = [peer for peer in self.names if peer not in there]
        self.network.partition([here, there], silent=silent)
        self.is_parted = True

    def part_all(self) -> None:
        """Cut all nodes off from each other, without their noticing."""
        self.network.partition([[peer] for peer in self.names], silent=True)
        self.is_parted = True

    def heal(self) -> None:
        """End all partitions."""
        self.network.heal()
        self.is_parted = False


class _Broken:
    """A node that does not start."""

    hello = Hello(WIRE_VERSION, WIRE_VERSION, {}, (), FRAME_BYTES, (), "broken")

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Do nothing."""
        return []


def person_key(seed: int, owner: str) -> SigningKey:
    """Return the key of a person of `seeded_identity`."""
    return SigningKey.generate(SeededEntropy(seed, f"identity/{owner}"))


def pick(luck: Random, names: list[str]) -> str | None:
    """Draw one of these names, if there is one."""
    return luck.choice(names) if names else None
