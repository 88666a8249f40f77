"""What happens in a room whose nodes are killed: a plan that follows from a seed, and its performance."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TypeAlias

from msgspec import Struct
from tests.node.crash_world import CrashWorld, event_id
from tests.node.killed_world import at_once, until
from tests.node.lasting_reader import UNREACHED

from linnet.cli.exits import Failure
from linnet.node.client import ControlError
from linnet.node.room_types import LedgerReply, SentReply, StateReply
from linnet.rooms.content import NAME, Membership
from linnet.rooms.results import Fate
from linnet.sim.rooms_world import FOUNDER

MODERATOR = 50
MUTED = -1
LEDGER_LINES = 1000
CALLS = 16
"""Calls to nodes that may be under way at once."""
TRIES = 120
"""Times that somebody is asked to ban or to change a level, while it is down."""
SETTLED = 2.0
"""Seconds for which nothing may change at the end."""


class Size(Struct, frozen=True):
    """How many of everything."""

    peers: int
    relays: int
    messages: int
    bans: int
    demotions: int
    kills: int
    """Of peers, at random; every relay is killed twice besides."""
    seconds: float
    """How long all this takes, about."""
    quiet: float
    """Seconds at the end, at most, until everyone agrees and nothing moves any more."""

    @property
    def moderators(self) -> int:
        """Peers beside the founder who may ban."""
        return max(1, self.peers // 8)


class Say(Struct, frozen=True):
    """Somebody says something."""

    who: str


class Call(Struct, frozen=True):
    """A moderator names the room."""

    who: str


class Ban(Struct, frozen=True):
    """A moderator bans somebody."""

    who: str
    whom: str


class Rank(Struct, frozen=True):
    """A moderator changes somebody's level."""

    who: str
    whom: str
    level: int


class Kill(Struct, frozen=True):
    """A node is killed, and started again after so many seconds."""

    who: str
    away: float
    last_word: float | None
    """Seconds before that at which it is still asked to say something."""
    first_word: bool
    """Whether it says something as soon as it is back, before it can know what has happened."""


class Look(Struct, frozen=True):
    """Somebody's ledger is read."""

    who: str


Act: TypeAlias = Say | Call | Ban | Rank | Kill | Look


def plan(seed: int, size: Size) -> list[tuple[float, Act]]:
    """What is to happen at which second."""
    luck = Random(f"crashes {seed}")
    peers = [f"peer{number}" for number in range(size.peers)]
    moderators, others = peers[: 1 + size.moderators], peers[1 + size.moderators :]

    def at(low: float, high: float) -> float:
        return luck.uniform(low, high) * size.seconds

    def killed(name: str) -> Kill:
        last_word = luck.uniform(0.0, 0.05) if name in peers and luck.random() < 0.7 else None
        return Kill(name, luck.uniform(0.0, 3.0), last_word, name in peers and luck.random() < 0.5)

    acts: list[tuple[float, Act]] = [(at(0, 1), Say(luck.choice(peers))) for _ in range(size.messages)]
    acts += [(at(0.03, 0.97), killed(luck.choice(peers))) for _ in range(size.kills)]
    for number in range(size.relays):
        acts += [(at(*part), killed(f"relay{number}")) for part in ((0.05, 0.5), (0.5, 0.95))]
    for number, whom in enumerate(luck.sample(others, size.bans)):
        when = at(0.1, 0.85)
        acts.append((when, Ban(moderators[number % size.moderators], whom)))
        if luck.random() < 0.7:  # Banned while away, it speaks before it can know.
            acts.append((when - 0.2, Kill(whom, luck.uniform(0.3, 1.5), 0.0, True)))
    for _ in range(size.demotions):
        acts.append((at(0.1, 0.85), Rank(FOUNDER, luck.choice(others), MUTED)))
        acts.append((at(0.1, 0.85), Rank(luck.choice(moderators), luck.choice(others), luck.randint(1, 20))))
    if size.moderators > 1:  # One that uses its power just as it loses it.
        when = at(0.5, 0.9)
        acts.append((when, Rank(FOUNDER, moderators[-1], 0)))
        acts.append((when, Ban(moderators[-1], luck.choice(others))))
    acts += [(at(0, 1), Call(luck.choice(moderators))) for _ in range(1 + size.messages // 40)]
    acts += [(at(0.1, 1), Look(luck.choice(peers))) for _ in range(size.peers)]
    return sorted(acts, key=lambda act: act[0])


class Claim(Struct, frozen=True):
    """What somebody's ledger said."""

    sender: str
    event: bytes
    person: str
    fate: Fate
    relays: tuple[str, ...]
    reason: str | None


class Course:
    """Performs a plan over a world that is set up, and remembers all that was promised."""

    def __init__(self, world: CrashWorld, seed: int, size: Size) -> None:
        self._world = world
        self._size = size
        self._plan = plan(seed, size)
        self._calls = ThreadPoolExecutor(CALLS)
        self._returns: list[threading.Thread] = []
        self.said: dict[bytes, str] = {}
        """Events that the control API has acknowledged, and whose they are."""
        self.claims: dict[Claim, None] = {}
        """What ledgers said, at any time."""
        self.states: dict[str, StateReply] = {}
        """How the room stood at the end, by peer."""
        self.finals: list[Claim] = []
        """What ledgers said at the end."""
        self.banned: dict[str, None] = {}
        self.declined = self.unanswered = 0
        self.failures: list[str] = []

    def run(self) -> None:
        """Everything, up to the quiet time; then everybody is asked how the room stands."""
        self._appoint()
        began = time.monotonic()
        try:
            for number, (when, act) in enumerate(self._plan):
                time.sleep(max(0.0, began + when - time.monotonic()))
                self._perform(act, number)
        finally:
            for thread in self._returns:
                thread.join()
            self._calls.shutdown()
        self._world.start_all()
        self._settle()
        at_once(lambda node: self._ask_at_the_end(node.name), self._world.peers.values())

    def _appoint(self) -> None:
        founder = self._world.nodes[FOUNDER]
        for number in range(1, 1 + self._size.moderators):
            person = self._world.nodes[f"peer{number}"].person
            self._keep(FOUNDER, founder.control.set_level(self._world.room, MODERATOR, person=person))

    def _perform(self, act: Act, number: int) -> None:
        match act:
            case Kill():
                if act.last_word is not None:
                    self._call(Say(act.who), f"last {number}")
                    time.sleep(act.last_word)
                self._world.kill(act.who)
                thread = threading.Thread(target=self._return, args=(act, number))
                self._returns.append(thread)
                thread.start()
            case _:
                self._call(act, str(number))

    def _return(self, act: Kill, number: int) -> None:
        time.sleep(act.away)
        killed = self._world.killed[act.who]
        try:
            self._world.start(act.who)
        except Failure as failure:
            if self._world.killed[act.who] == killed:
                self.failures.append(str(failure))
            return
        if act.first_word:
            self._do(Say(act.who), f"back {number}")

    def _call(self, act: Say | Call | Ban | Rank | Look, words: str) -> None:
        self._calls.submit(self._do, act, words)

    def _do(self, act: Say | Call | Ban | Rank | Look, words: str) -> None:
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

    def _ask(self, act: Say | Call | Ban | Rank | Look, words: str) -> None:
        nodes, room = self._world.nodes, self._world.room
        control = nodes[act.who].control
        match act:
            case Say():
                self._keep(act.who, control.send_to_room(room, [f"{act.who} {words}".encode()]))
            case Call():
                self._keep(act.who, control.set_state(room, NAME, words))
            case Ban():
                banned = control.set_membership(room, nodes[act.whom].person, Membership.BAN)
                self._keep(act.who, banned)
                self.banned[act.whom] = None
            case Rank():
                self._keep(act.who, control.set_level(room, act.level, person=nodes[act.whom].person))
            case Look():
                ledger = control.room_ledger(room, limit=LEDGER_LINES)
                self.claims |= dict.fromkeys(_claims(act.who, ledger))

    def _keep(self, who: str, sent: SentReply) -> None:
        for event in sent.ids:
            self.said[event_id(event)] = who

    # The end.

    def _settle(self) -> None:
        """Wait until the members agree, and nothing has moved for a while."""
        seen: tuple[object, ...] = ()
        since = time.monotonic()

        def is_settled() -> bool:
            nonlocal seen, since
            self.states = {}
            at_once(lambda node: self._look(node.name), self._world.peers.values())
            joined = self.members()
            digests = {self.states[name].digest for name in joined if name in self.states}
            handed = tuple(application.handed for application in self._world.applications.values())
            now = (digests, handed, {name: state.heads for name, state in self.states.items()})
            if now != seen or len(digests) > 1:
                seen, since = now, time.monotonic()
            return time.monotonic() - since >= SETTLED

        until(is_settled, self._size.quiet)

    def members(self) -> list[str]:
        """Peers who are in the room, as its founder sees it."""
        founder = self.states.get(FOUNDER)
        joined = () if founder is None else founder.members
        people = {each.person for each in joined if each.membership is Membership.JOIN}
        return [name for name, node in self._world.peers.items() if node.person in people]

    def _look(self, name: str) -> None:
        with contextlib.suppress(*UNREACHED):
            self.states[name] = self._world.nodes[name].control.room_state(self._world.room)

    def _ask_at_the_end(self, name: str) -> None:
        control = self._world.nodes[name].control
        self.states[name] = control.room_state(self._world.room)
        self.finals += _claims(name, control.room_ledger(self._world.room, limit=LEDGER_LINES))


def _claims(name: str, ledger: LedgerReply) -> list[Claim]:
    return [
        Claim(name, event_id(line.event), fate.person, fate.fate, fate.relays, fate.reason)
        for line in ledger.events
        for fate in line.members
    ]
