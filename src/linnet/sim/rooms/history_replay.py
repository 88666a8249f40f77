"""Real concurrent histories through rooms: every order of arrival gives one state and one causal order.

A history is a graph of what people did at the same time without knowing of each other: each step names the
steps that its author had seen. Histories of collaborative editing are published as JSON
(github.com/josephg/editing-traces, ``concurrent_traces``). Each author becomes a member, each step a signed
event that sets a piece of state, and every replica gets all of them in an order of its own.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import BadText
from linnet.core.ids import EventId
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.machine.outbox import Outbox
from linnet.overlay.config import MemberConfig
from linnet.overlay.notices import Adjacency
from linnet.overlay.part import Overlays
from linnet.overlay.tracker_client import TrackerClient
from linnet.peer.config import Identity
from linnet.rooms.commands import CreateRoom
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_positions import Arrival, Draft, found
from linnet.rooms.event_types import MEMBER, POWER, ROOM_VERSION, Create, Membership, body_of, member_key
from linnet.rooms.event_types import Member as MemberContent
from linnet.rooms.room import Room
from linnet.rooms.room_commands import FIRST_POWER, founding
from linnet.rooms.room_setup import Setting
from linnet.rooms.room_status import state_of
from linnet.sim.clock import START
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.seeded_random import named_luck, seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore

EDIT = "edit"
_DOCUMENT = "document"
_STEPS_MOST = 1_000_000


class Step(Struct, frozen=True):
    """One step of a history."""

    parents: tuple[int, ...]
    """The newest steps that its author had seen, by number."""
    agent: int
    patches: tuple[tuple[int, int, str], ...] = ()


class History(Struct, frozen=True, rename="camel"):
    """The steps of several authors, in an order in which causes come first."""

    num_agents: int
    txns: tuple[Step, ...]


class HistoryReport(Struct, frozen=True):
    """The outcome of a history in rooms."""

    events: int
    merges: int
    """Steps that follow more than one other."""
    members: int
    replicas: int
    waited: int
    """Events that arrived before one that they depend on, over all replicas."""
    waiting: int
    """Events that still wait at the end, over all replicas: 0."""
    rejected: int
    """Events that a replica refused, over all replicas: 0."""
    distinct_states: int
    """The number of different final states: 1 if all agree."""
    distinct_orders: int
    """The number of different causal orders: 1 if all agree."""
    causal_violations: int
    """Events placed before one that they depend on: 0."""

    @property
    def agrees(self) -> bool:
        """Whether all replicas agree, with nothing left over."""
        left = self.waiting + self.rejected + self.causal_violations
        return (self.distinct_states, self.distinct_orders, left) == (1, 1, 0)


def read_history(path: Path) -> History:
    """Read a history from its file; `BadText` names the error."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        history = msgspec.json.decode(raw, type=History)
    except msgspec.DecodeError as error:
        raise BadText(f"{path.name} is no concurrent history: {error}") from error
    check_history(history)
    return history


def check_history(history: History) -> None:
    """Raise `BadText` unless causes come first and authors are numbered."""
    if not 1 <= len(history.txns) <= _STEPS_MOST:
        raise BadText(f"a history has 1 to {_STEPS_MOST:,} steps, this one {len(history.txns):,}")
    for number, step in enumerate(history.txns):
        if not 0 <= step.agent < history.num_agents:
            raise BadText(f"step {number} is of author {step.agent}, but there are {history.num_agents}")
        if any(not 0 <= parent < number for parent in step.parents):
            raise BadText(f"step {number} follows one that does not come before it")


def replay(history: History, replicas: int, seed: int, progress: Progress = tell_nobody) -> HistoryReport:
    """Hand a history to so many replicas of one room, each in an order of its own, and compare them."""
    stage = _Stage(history.num_agents, seed)
    units, parents = stage.write(history)
    states: dict[bytes, None] = {}
    orders: dict[tuple[EventId, ...], None] = {}
    waited = waiting = rejected = violations = 0
    for number in range(replicas):
        progress(number / replicas, f"replica {number + 1} of {replicas}")
        room = stage.replica(f"replica {number}")
        shuffled = list(units)
        named_luck(seed, f"order {number}").shuffle(shuffled)
        placed: dict[EventId, None] = {}
        for verified in shuffled:
            waited += not _take(room, verified, placed)
        waiting += len(room.intake.order)
        rejected += room.intake.rejected
        violations += _violations(placed, parents)
        states[state_of(room).digest] = None
        orders[tuple(room.dag.ids_in_order())] = None
    merges = sum(len(step.parents) > 1 for step in history.txns)
    return HistoryReport(
        len(history.txns),
        merges,
        history.num_agents,
        replicas,
        waited,
        waiting,
        rejected,
        len(states),
        len(orders),
        violations,
    )


def _take(room: Room, verified: Verified, placed: dict[EventId, None]) -> bool:
    """Hand an event to a replica; return whether it was placed at once."""
    before = len(placed)
    for each in room.intake.take(Arrival(verified, None, 1, 0), START + 1.0):
        placed[each.arrival.event.id] = None
        room.note_event(each.arrival.event)
    room.out.clear()  # Nobody performs anything here.
    return len(placed) > before


def _violations(placed: dict[EventId, None], parents: dict[EventId, tuple[EventId, ...]]) -> int:
    place = {event: number for number, event in enumerate(placed)}
    return sum(
        place[parent] > place[event] for event in placed for parent in parents[event] if parent in place
    )


class _Stage:
    """A room of so many members, and their events."""

    def __init__(self, members: int, seed: int) -> None:
        self._seed = seed
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()
        self._members = [seeded_identity(seed, f"author {number}", START) for number in range(members)]
        founder = self._members[0]
        context = self._context(founder)
        entropy = named_luck(seed, "room").randbytes(16)
        self._create = found(context, Create(ROOM_VERSION, (), entropy), START)
        self._beginning: list[Verified] = []
        self._founded(context)

    def _founded(self, context: Context) -> None:
        """Create the founder's room: all members are invited and join before the history begins."""
        room = self._room(context)
        drafts = founding(CreateRoom(), context.author)
        levels = replace(FIRST_POWER, events={**FIRST_POWER.events, EDIT: 0})
        drafts.append(Draft(POWER, "", body_of(levels)))
        drafts += [
            Draft(MEMBER, member_key(each.author), body_of(MemberContent(Membership.INVITE)))
            for each in self._members[1:]
        ]
        made, declined = room.passing.say(drafts, START)
        if declined is not None:
            raise BadText(f"the room of a history: {declined.detail}")
        self._beginning = made
        for identity in self._members[1:]:
            guest = self.replica(None, identity)
            join = guest.membership_drafts(Membership.JOIN, None)
            self._beginning = [*self._beginning, *guest.passing.say(join, START)[0]]

    def replica(self, name: str | None, identity: Identity | None = None) -> Room:
        """Return the room at a member that knows nothing but its beginning."""
        known = identity or seeded_identity(self._seed, name or "", START)
        room = self._room(self._context(known))
        for verified in self._beginning:
            room.intake.take(Arrival(verified, None, 1, 0), START)
            room.note_event(verified.events[0])
        return room

    def write(self, history: History) -> tuple[list[Verified], dict[EventId, tuple[EventId, ...]]]:
        """Sign every step as an event; return them with the events that each follows."""
        start = self.replica("nobody")
        heads, control = start.dag.heads, start.control.heads
        chains: list[tuple[int, EventId | None]] = [(-1, None)] * len(self._members)
        for verified in self._beginning:
            event = verified.events[0]
            agent = next(n for n, each in enumerate(self._members) if each.author == event.author)
            chains[agent] = (event.seq or 0, event.id)
        heights = {head: start.dag.height(head) for head in (*heads, *control)}
        for _, prev in chains:
            if prev is not None:
                heights[prev] = start.dag.height(prev)
        units: list[Verified] = []
        parents: dict[EventId, tuple[EventId, ...]] = {}
        for number, step in enumerate(history.txns):
            deps = tuple(units[parent].head for parent in step.parents) or heads
            seq, prev = chains[step.agent]
            refs = (*deps, *control, *(() if prev is None else (prev,)))
            height = 1 + max(heights[ref] for ref in refs)
            body = msgspec.json.encode(step.patches)
            time = int(START * 1000) + number
            tail = Tail(deps, None, height, control, EDIT, _DOCUMENT, time, None, body)
            member = self._members[step.agent]
            card = member.card
            room = start.id
            verified = sign_unit(member.device, Spot(room, card.person, card.device, seq + 1, prev), (tail,))
            chains[step.agent] = (seq + 1, verified.head)
            heights[verified.head] = height
            units.append(verified)
            parents[verified.head] = refs
        return units, parents

    def _context(self, identity: Identity) -> Context:
        luck = Random(f"{self._seed}/{identity.author.hex()}")
        context = Context(
            identity.device,
            identity.card,
            MemoryStore(),
            DeliveryConfig(),
            luck,
            self._verifier,
            self._card_check,
        )
        for member in self._members:
            context.cards.learn(member.card)
        return context

    def _room(self, context: Context) -> Room:
        # Everything is open to everyone: the history says who did what, and each was able to.
        config = RoomsConfig(waiting_events=_STEPS_MOST, waiting_bytes=1 << 40)
        out = Outbox()
        adjacency = Adjacency(out)
        overlays = Overlays(TrackerClient(MemberConfig(), out, adjacency), adjacency, out)
        setting = Setting(context, config, out, overlays, (), ())
        room = Room(self._create, setting)
        room.begin(self._create, START)
        return room
