"""The open world with real processes: the faults of `linnet.sim.nemesis` that can be done to a process.

Clocks, disks, loss and partitions need the help of the system; the simulator has those.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from random import Random

from msgspec import Struct
from msgspec.structs import replace
from tests.node.crash_world import CrashWorld, Handed, Handled, event_id, handed_lines
from tests.node.killed_world import configure, until
from tests.node.lasting_reader import UNREACHED

from linnet.cli.play.nodes import LiveNode, _free_port
from linnet.core.ids import AuthorId, EventId
from linnet.identity.text import Sort, from_text
from linnet.node.config import NodeConfig
from linnet.sim.judges.rooms import Member, Message, Ruling, Seen, judge_room
from linnet.sim.judges.verdict import Complaint
from linnet.sim.nemesis.faults import Fault
from linnet.sim.rooms_world import FOUNDER

FAULTS = (
    Fault.MOVE,
    Fault.RESTART_ALL,
    Fault.KILL,
    Fault.PAUSE,
    Fault.AWAY,
    Fault.NEWCOMER,
    Fault.CHANGE,
)
"""Those that can be done to a process; each strikes once."""

NEWCOMER = "peer3"
SETTLES = 90.0


class Saying(Struct, frozen=True):
    """A word that was acknowledged."""

    id: EventId
    text: str
    sender: str
    asked: float


class OpenCourse:
    """One room of live nodes, and what is done to it."""

    def __init__(self, world: CrashWorld, seed: int) -> None:
        self.world = world
        self.said: list[Saying] = []
        self.rulings: list[Ruling] = []
        self.struck: list[Fault] = []
        self._luck = Random(seed)

    @property
    def members(self) -> list[LiveNode]:
        """Everybody but the relay."""
        return list(self.world.peers.values())

    def run(self) -> None:
        """Every fault once, in an order that the seed draws; everybody speaks after each."""
        self.speak()
        for fault in self._luck.sample(FAULTS, len(FAULTS)):
            self.struck.append(fault)
            self._strike(fault)
            self.speak()
        self.world.start_all()
        self.speak()

    def speak(self, paused: LiveNode | None = None) -> None:
        """Whoever can be asked says a word; who is paused would not answer."""
        for node in self.members:
            if node is paused or not node.is_up:
                continue
            text, asked = f"{node.name}:{len(self.said)}", time.monotonic()
            with contextlib.suppress(*UNREACHED):
                sent = node.control.send_to_room(self.world.room, [text.encode()])
                self.said.append(Saying(EventId(event_id(sent.ids[0])), text, node.name, asked))

    def _strike(self, fault: Fault) -> None:
        world, luck = self.world, self._luck
        node = luck.choice(self.members)
        match fault:
            case Fault.KILL:
                world.kill(node.name)
                self.speak()
                world.start(node.name)
            case Fault.MOVE:
                world.kill(node.name)
                configure(node, _moved)
                self.speak()
                world.start(node.name)
            case Fault.PAUSE if node.pid is not None:
                os.kill(node.pid, signal.SIGSTOP)
                try:
                    self.speak(node)
                finally:
                    os.kill(node.pid, signal.SIGCONT)
            case Fault.RESTART_ALL:
                for each in world.nodes.values():
                    world.kill(each.name)
                world.start_all()
            case Fault.AWAY:
                (relay,) = world.relays
                world.kill(relay.name)
                self.speak()
                world.start(relay.name)
            case Fault.CHANGE:
                self._decide()
            case _:
                world.kill(NEWCOMER)  # It comes back as one who missed all that was said meanwhile.
                self.speak()
                world.start(NEWCOMER)

    def _decide(self) -> None:
        founder = self.world.nodes[FOUNDER]
        for node in self.members[1:]:
            level = self._luck.randint(1, 49)
            founder.control.set_level(self.world.room, level, node.person)
            self.rulings.append(Ruling(f"level of {node.name}", str(level), time.monotonic()))

    def settled(self) -> bool:
        """Whether every application was handed every word within the time."""
        wanted = {saying.id for saying in self.said}
        return until(lambda: all(wanted <= self._handed(node) for node in self.members), SETTLES)

    def judge(self) -> list[Complaint]:
        """What is not as it was promised."""
        messages = [
            Message(saying.id, saying.text, saying.sender, saying.asked, frozenset(), is_owed=True)
            for saying in self.said
        ]
        known = {saying.id for saying in self.said}
        members = [self._member(node, known) for node in self.members]
        return judge_room(messages, self.rulings, members, (), FOUNDER)

    def _handed(self, node: LiveNode) -> set[EventId]:
        lines = handed_lines(node.home.path)
        return {EventId(event_id(line.event)) for line in lines if isinstance(line, Handed)}

    def _member(self, node: LiveNode, known: set[EventId]) -> Member:
        """What one application has; events of state are not judged here."""
        lives: dict[int, list[EventId]] = {}
        handled: dict[int, int] = {}
        for line in handed_lines(node.home.path):
            if isinstance(line, Handed):
                lives.setdefault(line.life, []).append(EventId(event_id(line.event)))
            elif isinstance(line, Handled):
                handled[line.life] = line.events
        seen = tuple(
            Seen(
                tuple(each for each in life if each in known),
                frozenset(),
                frozenset(life[: handled.get(number, 0)]),
            )
            for number, life in lives.items()
        )
        names = {each.person: each.name for each in self.members}
        state = node.control.room_state(self.world.room)
        levels = tuple(
            (f"level of {names[member.person]}", str(member.level))
            for member in state.members
            if member.person in names and member.level
        )
        person = AuthorId(from_text(Sort.PERSON, node.person))
        return Member(node.name, person, seen, levels)


def _moved(config: NodeConfig) -> NodeConfig:
    return replace(config, node=replace(config.node, listen=(f"127.0.0.1:{_free_port()}",)))
