"""The spending of nodes: failed dials, messages, and work, with the most that each situation allows.

Virtual time has no processor. The work of a node's processor follows from its machine's inputs and effects:
each of them is a step. That is equal in every process, as CPU time is not.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from linnet.core.effects import AfterCommit, Dial, Probe, Send
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, LinkUp, Probed, Received, TimerFired
from linnet.peer.interface import Effect, Input, Promise
from linnet.sim.judges.verdict import Complaint, Rule

MINUTE = 60
"""Seconds of a window in which spending is judged; a window may begin in each second."""
DIALS = 10
"""The most dials a minute to a peer that does not answer, over all lives of a node together."""
PINGS = 8
"""Messages a minute over an idle link: four pings, every 15 s, and as many answers."""
HEARTBEATS = {"streams": 4, "rooms": 4, "places": 6, "content": 16}
"""Messages a minute to each other node while nothing happens, beside pings.

Streams: a status to the tracker and the heads of chains, and a lazy peer drawn each half minute: two wishes
and its heads. Rooms: the heads, every 30 s, and an answer. Places:
a keepalive every 30 s; a co-host that lost its keys asks for them, ever more seldom, and the host that
answers takes the voice over, which takes three messages (the term, the guests, the keys); and one question or
answer. Content: filters are confirmed by lookups in the hash table, some two a minute; one costs a question,
an answer and a link that is opened and closed for it, at both ends.
"""
QUESTIONS = 24
"""Further messages a minute to each other node while a wanted node is away: no node asks the same twice
within five seconds, and every node answers."""
SAID = 100
"""Approximate number of application actions in a whole course: each may be carried to, confirmed by and
requested by every node in one minute, as when all have been apart."""
MESSAGE_STEPS = 4
"""Steps for one message: its cause, itself, a timer, a record. A ping and its answer take seven."""
DIAL_STEPS = 5
"""Steps for one failed dial: a timer, the dial, its failure, a timer, and a record."""
TIMER_STEPS = 3 * MINUTE
"""Steps of all timers that cause no message: one a second, with the next timer and a record."""
STARTS = 12
"""Starts a minute of a node that ends over and over: one every five seconds."""
START_STEPS = 60
"""Steps of one start: every part begins, and every subscription resumes."""
STORM = 30_000
"""Failed dials from one node to one peer after which a run ends: it would take hours."""
STORM_STEPS = 100_000
"""Steps of one node in one second after which a run ends: time might not go on at all otherwise."""


class Storm(Exception):
    """One node does something without end."""


class Situation(StrEnum):
    """The situation of a world while its nodes are watched."""

    BUSY = "while faults strike"
    """Applications do their usual work, and random faults strike."""
    QUIET = "while nothing happens"
    """All problems are over, and applications do nothing."""
    AWAY = "while those that others rely on are away"
    """Applications do nothing."""
    ALONE = "while nobody reaches anybody"
    """Applications do nothing."""
    RESTARTED = "while all are alone and started over and over"


class Spent(Struct, frozen=True):
    """The most that one node spent in a minute."""

    messages: int = 0
    """Messages sent."""
    steps: int = 0
    """Inputs handled and effects returned."""


class Peak(Struct, frozen=True):
    """The minute in which a node spent most, and on what."""

    count: int
    node: str
    mostly: str


class Dials:
    """Failed dials: node, peer and times, over all lives of a node."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, PeerId], list[float]] = defaultdict(list)
        """Times of dials since the peer last answered."""
        self._worst: tuple[int, str, PeerId | None] = (0, "", None)

    def dial(self, node: str, peer: PeerId, now: float) -> None:
        """Count a dial without an answer so far. Raises `Storm` if that happens all the time."""
        times = self.made[node, peer]
        times.append(now)
        if len(times) >= STORM:
            raise Storm(f"{node} dialled {peer.hex()[:8]} {STORM} times in {now - times[0]:.0f} s")

    def answer(self, node: str, peer: PeerId, *, dialed: bool) -> None:
        """Note that a link is open: a dial from here was not in vain, and earlier failures are over."""
        times = self.made.get((node, peer))
        if times is not None:
            if dialed:
                times.pop()
            self._worst = self.worst(MINUTE)
            del self.made[node, peer]

    def worst(self, within: float) -> tuple[int, str, PeerId | None]:
        """Return the most failed dials of one node to one peer within so many seconds, with no link
        between."""
        most = self._worst
        for (node, peer), times in self.made.items():
            first = 0
            for last, time in enumerate(times):
                while times[first] <= time - within:
                    first += 1
                if last - first + 1 > most[0]:
                    most = (last - first + 1, node, peer)
        return most


class _Second:
    """The spending of one node in one second."""

    __slots__ = ("messages", "steps")

    def __init__(self) -> None:
        self.messages: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()


class Account:
    """The spending of every node, by situation."""

    def __init__(self) -> None:
        self.situation = Situation.BUSY
        self.dials = Dials()
        self._seconds: dict[Situation, dict[str, dict[int, _Second]]] = {
            each: defaultdict(lambda: defaultdict(_Second)) for each in Situation
        }

    def handled(self, node: str, event: Input, effects: Sequence[Effect], now: float) -> None:
        """Count an input of a node and its effects. Raises `Storm` if the node does something without end.

        A dial that waits for no commit counts at once, though the node may end at a commit that it asked for
        before: a real driver would have dialled.
        """
        second = self._seconds[self.situation][node][int(now)]
        steps, cause = 1, _name(event)
        for effect in _flat(effects):
            steps += 1
            if isinstance(effect, Send):
                second.messages[type(effect.message).__name__] += 1
        self._count_dials(node, effects, now)
        second.steps[cause] += steps
        if isinstance(event, LinkUp):
            self.dials.answer(node, event.peer, dialed=event.dialed)
        elif isinstance(event, Probed) and event.reason is None:
            self.dials.answer(node, event.peer, dialed=True)
        if second.steps[cause] > STORM_STEPS:
            raise Storm(f"{node} took {second.steps[cause]} steps in a second, after {cause}")

    def committed(self, node: str, promises: Sequence[Promise], now: float) -> None:
        """Count the effects of a node that waited for its commit."""
        self._count_dials(node, promises, now)

    def most_messages(self, situation: Situation) -> Peak:
        """Return the most messages that a node sent in a minute of this situation."""
        return self._peak(situation, "messages")

    def most_steps(self, situation: Situation) -> Peak:
        """Return the most steps that a node took in a minute of this situation."""
        return self._peak(situation, "steps")

    def spent(self) -> dict[str, Spent]:
        """Return the most of both, by situation."""
        return {
            each.name.lower(): Spent(self.most_messages(each).count, self.most_steps(each).count)
            for each in Situation
        }

    def _count_dials(self, node: str, effects: Sequence[Effect], now: float) -> None:
        for effect in effects:
            if isinstance(effect, Dial | Probe):
                self.dials.dial(node, effect.peer, now)

    def _peak(self, situation: Situation, what: str) -> Peak:
        peak = Peak(0, "", "")
        for node, seconds in self._seconds[situation].items():
            kinds: dict[int, Counter[str]] = {at: getattr(seconds[at], what) for at in sorted(seconds)}
            window: deque[tuple[int, int]] = deque()
            total = 0
            for at, each in kinds.items():
                window.append((at, each.total()))
                total += window[-1][1]
                while window[0][0] <= at - MINUTE:
                    total -= window.popleft()[1]
                if total > peak.count:
                    ((kind, most),) = sum((kinds[one] for one, _ in window), Counter[str]()).most_common(1)
                    peak = Peak(total, node, f"{most} of {kind}")
        return peak


def allowed(way: str, situation: Situation, others: int) -> Spent:
    """Return the most that a node may spend in a minute of this situation, among so many others."""
    quiet = others * (PINGS + HEARTBEATS[way])
    broken = quiet + others * QUESTIONS
    dialing = others * DIALS * DIAL_STEPS
    match situation:
        case Situation.QUIET:
            return Spent(quiet, quiet * MESSAGE_STEPS + TIMER_STEPS)
        case Situation.AWAY | Situation.ALONE:
            return Spent(broken, broken * MESSAGE_STEPS + dialing + TIMER_STEPS)
        case Situation.RESTARTED:
            return Spent(broken, STARTS * START_STEPS + dialing + TIMER_STEPS)
        case Situation.BUSY:
            busy = broken + others * SAID * 3
            return Spent(busy, busy * MESSAGE_STEPS + dialing + TIMER_STEPS)


def over_budget(way: str, account: Account, names: Mapping[PeerId, str]) -> list[Complaint]:
    """Return a complaint for everything that nodes of these names spent beyond the allowance."""
    complaints = []
    most, node, peer = account.dials.worst(MINUTE)
    if most > DIALS and peer is not None:
        whom = names.get(peer, peer.hex())
        complaints.append(Complaint(Rule.BUDGET, f"{node} dialled {whom} {most} times in a minute"))
    for situation in Situation:
        most_of = allowed(way, situation, len(names) - 1)
        sent, taken = account.most_messages(situation), account.most_steps(situation)
        if sent.count > most_of.messages:
            complaints.append(_complaint(sent, "sent", "messages", most_of.messages, situation))
        if taken.count > most_of.steps:
            complaints.append(_complaint(taken, "took", "steps", most_of.steps, situation))
    return complaints


def most_spent(many: Iterable[Mapping[str, Spent]]) -> dict[str, Spent]:
    """Return the most of several runs, by situation."""
    most: dict[str, Spent] = {}
    for spent in many:
        for situation, one in spent.items():
            known = most.get(situation, Spent())
            most[situation] = Spent(max(known.messages, one.messages), max(known.steps, one.steps))
    return most


def _complaint(peak: Peak, did: str, what: str, most: int, situation: Situation) -> Complaint:
    text = f"{peak.node} {did} {peak.count} {what} in a minute {situation}, {most} at most ({peak.mostly})"
    return Complaint(Rule.BUDGET, text)


def _flat(effects: Iterable[Effect]) -> Iterable[Effect]:
    for effect in effects:
        if isinstance(effect, AfterCommit):
            yield from effect.effects
        else:
            yield effect


def _name(event: Input) -> str:
    match event:
        case Received(_, message):
            return type(message).__name__
        case TimerFired(timer):
            return f"timer {type(timer).__name__}"
        case Asked(_, command):
            return type(command).__name__
        case _:
            return type(event).__name__
