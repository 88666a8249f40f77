"""What happens in a room whose nodes are killed: its plan is performed, and all promises are remembered."""

from __future__ import annotations

import contextlib
import time

from msgspec import Struct
from tests.node.crash_plan import Act, Ban, Call, Look, Rank, RoomKill, Say, Size, Wish, plan
from tests.node.crash_world import CrashWorld
from tests.node.killed_course import KilledCourse
from tests.node.killed_world import at_once
from tests.node.lasting_reader import UNREACHED

from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.receipts import Fate
from linnet.node.client import ControlError
from linnet.rooms.commands import (
    ExamineLedger,
    ExamineState,
    LedgerIs,
    SendToRoom,
    Sent,
    SetLevel,
    SetMembership,
    SetState,
    StateIs,
)
from linnet.rooms.event_types import NAME, Membership
from linnet.sim.rooms.world import FOUNDER

MODERATOR = 50
LEDGER_LINES = 1000
TRIES = 120
"""Times that somebody is asked to ban or to change a level, while it is down."""
SETTLED = 2.0
"""Seconds for which nothing may change at the end."""


class Claim(Struct, frozen=True):
    """What somebody's ledger said."""

    sender: str
    event: bytes
    person: AuthorId
    fate: Fate
    relays: tuple[PeerId, ...]
    reason: Reason | None


class Course(KilledCourse[CrashWorld, Act]):
    """Performs a plan over a world that is set up, and remembers all that was promised."""

    def __init__(self, world: CrashWorld, seed: int, size: Size) -> None:
        super().__init__(world, plan(seed, size), size.quiet)
        self._moderators = size.moderators
        self.said: dict[bytes, str] = {}
        """Events that the control API has acknowledged, and whose they are."""
        self.claims: dict[Claim, None] = {}
        """What ledgers said, at any time."""
        self.states: dict[str, StateIs] = {}
        """How the room stood at the end, by peer."""
        self.finals: list[Claim] = []
        """What ledgers said at the end."""
        self.banned: dict[str, None] = {}
        self._seen: tuple[object, ...] = ()
        """How it all stood when somebody last looked, and since when."""
        self._unmoved = 0.0

    def run(self) -> None:
        """Everything, up to the quiet time; then everybody is asked how the room stands."""
        self._appoint()
        super().run()
        at_once(lambda node: self._ask_at_the_end(node.name), self._world.peers.values())

    def _appoint(self) -> None:
        founder = self._world.nodes[FOUNDER]
        for number in range(1, 1 + self._moderators):
            person = self._world.nodes[f"peer{number}"].author
            self._keep(FOUNDER, founder.control.ask(SetLevel(self._world.room, MODERATOR, person)))

    def _perform(self, act: Act, number: int) -> None:
        if not isinstance(act, RoomKill):
            self._calls.submit(self._do, act, str(number))
            return
        word = Say(act.who)
        if act.last_word is not None:
            self._calls.submit(self._do, word, f"last {number}")
            time.sleep(act.last_word)
        self._kill(act, (lambda: self._do(word, f"back {number}")) if act.first_word else None)

    def _do(self, act: Wish, words: str) -> None:
        """Ask it of the node; what it acknowledges is remembered. Who governs waits until it is up."""
        for _ in range(TRIES if isinstance(act, Ban | Rank) else 1):
            try:
                self._ask(act, words)
            except ControlError:
                self.declined += 1
                return
            except UNREACHED:
                self.unanswered += 1
                time.sleep(0.5)
            else:
                return

    def _ask(self, act: Wish, words: str) -> None:
        nodes, room = self._world.nodes, self._world.room
        control = nodes[act.who].control
        match act:
            case Say():
                self._keep(act.who, control.ask(SendToRoom(room, (f"{act.who} {words}".encode(),))))
            case Call():
                self._keep(act.who, control.ask(SetState(room, NAME, text=words)))
            case Ban():
                banned = control.ask(SetMembership(room, nodes[act.whom].author, Membership.BAN))
                self._keep(act.who, banned)
                self.banned[act.whom] = None
            case Rank():
                self._keep(act.who, control.ask(SetLevel(room, act.level, nodes[act.whom].author)))
            case Look():
                ledger = control.ask(ExamineLedger(room, limit=LEDGER_LINES))
                self.claims |= dict.fromkeys(_claims(act.who, ledger))

    def _keep(self, who: str, sent: Sent) -> None:
        for event in sent.ids:
            self.said[event] = who

    # The end.

    def is_settled(self) -> bool:
        """Whether the members agree, and nothing has moved for a while."""
        self.states = {}
        at_once(lambda node: self._look(node.name), self._world.peers.values())
        digests = {self.states[name].digest for name in self.members() if name in self.states}
        handed = tuple(application.handed for application in self._world.applications.values())
        now = (digests, handed, {name: state.heads for name, state in self.states.items()})
        if now != self._seen or len(digests) > 1:
            self._seen, self._unmoved = now, time.monotonic()
        return time.monotonic() - self._unmoved >= SETTLED

    def members(self) -> list[str]:
        """Peers who are in the room, as its founder sees it."""
        founder = self.states.get(FOUNDER)
        joined = () if founder is None else founder.members
        people = {each.person for each in joined if each.membership is Membership.JOIN}
        return [name for name, node in self._world.peers.items() if node.author in people]

    def _look(self, name: str) -> None:
        with contextlib.suppress(*UNREACHED):
            self.states[name] = self._world.nodes[name].control.ask(ExamineState(self._world.room))

    def _ask_at_the_end(self, name: str) -> None:
        control = self._world.nodes[name].control
        self.states[name] = control.ask(ExamineState(self._world.room))
        self.finals += _claims(name, control.ask(ExamineLedger(self._world.room, limit=LEDGER_LINES)))


def _claims(name: str, ledger: LedgerIs) -> list[Claim]:
    return [
        Claim(name, line.event, fate.person, fate.fate, fate.relays, fate.reason)
        for line in ledger.events
        for fate in line.members
    ]
