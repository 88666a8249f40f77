"""A room in the open world: members, a relay, a stolen device, and a founder that decides."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed
from linnet.delivery.items import Unreadable
from linnet.event.event import MESSAGE, Event
from linnet.machine.commands import Declined, Done
from linnet.peer.config import PeerConfig
from linnet.peer.interface import AnyCommand, Handed, Start
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    ExamineRooms,
    ExamineState,
    JoinRoom,
    LeaveRoom,
    ReadRoom,
    RevokeInRoom,
    RoomLeft,
    RoomMade,
    RoomsAre,
    SendToRoom,
    Sent,
    SetLevel,
    SetMembership,
    SetRule,
    SetState,
    StateIs,
)
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.event_types import NAME, JoinRule, Membership, Newcomers
from linnet.sim.judges.rooms import Leaver, Member, Message, Outcast, Ruling, Seen, judge_room
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.named_nodes import SetupFailed
from linnet.sim.nemesis.budget import Situation
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_world import OpenWorld, pick
from linnet.sim.seeded_random import named_luck
from linnet.trace.records import TraceSink

FOUNDER, THIEF, RELAY, ACCOMPLICE = "ann", "ann-phone", "relay", "dan"
MEMBERS = (FOUNDER, "bob", "cid", ACCOMPLICE)
NEWCOMERS = ("eve", "fay", "gus")
LEAVERS = ("bob", *NEWCOMERS)
"""Nodes that may leave by themselves."""
_LEAVES = 0.3
"""Probability that a node leaves that was just started, or just cut off: no other may be in reach."""
_READER = 1
_REJOINED = 10.0
"""Seconds in which a revocation spreads, once there is no partition."""
_NAME = "open"


class Saying(Struct):
    """A message of a node."""

    text: str
    sender: str
    asked: float
    request: int
    after: frozenset[EventId]
    is_late: bool
    """Whether a device sent it after its owner had revoked it."""
    acked: float | None = None
    id: EventId = EventId(b"")


class Deciding(Struct):
    """A decision of the founder."""

    place: str
    value: str
    asked: float
    request: int
    acked: float | None = None


class Leaving(Struct):
    """A node's request to leave the room."""

    request: int
    asked: float
    acked: float | None = None


class Lived(Struct):
    """The items that an application was handed in one life of its node."""

    handed: list[EventId] = field(default_factory=list)
    unreadable: set[EventId] = field(default_factory=set)
    consumed: set[EventId] = field(default_factory=set)
    unwarned: set[EventId] = field(default_factory=set)
    """Events that arrived before the revocation could: other nodes were nearer to the thief."""


class RoomsWay(OpenWorld):
    """A world with one room."""

    way = "rooms"
    thief = THIEF
    robbed = FOUNDER

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, trace)
        self.room = TopicId(b"")
        self.is_encrypted = seed % 3 == 0
        self.said: list[Saying] = []
        self.decided: list[Deciding] = []
        self.lives: dict[str, list[Lived]] = {}
        self.joined: dict[str, float] = {}
        self.removed: dict[str, float] = {}
        self.leaving: dict[str, Leaving] = {}
        self._leaving_luck = named_luck(seed, "nemesis/rooms/leave")
        """A generator of its own, so that the rest of a seed is as it was before leaving was added."""
        self.revoked_at: float | None = None
        self._cut_off: set[str] = set()
        """Nodes that could not learn of it at once when the founder revoked a device."""
        self._side: frozenset[str] = frozenset()
        self._joining: dict[str, int] = {}
        self._consuming: list[tuple[int, Lived, tuple[EventId, ...]]] = []
        self.add((RELAY, *MEMBERS, THIEF, *NEWCOMERS))

    @property
    def cast(self) -> Cast:
        """See `OpenWorld.cast`."""
        return Cast(
            nodes=(RELAY, *MEMBERS),
            anchors=(RELAY, FOUNDER),
            spared=MEMBERS,
            fixed=(),
            newcomers=NEWCOMERS,
            thief=THIEF,
        )

    def configured(self, name: str) -> PeerConfig:
        """Return a configuration in which the relay is open to all."""
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name == RELAY else None
        return PeerConfig(listens=(self.address(name),), relay=relay)

    def set_up(self) -> None:
        """Let the founder create the room, and all but the newcomers join."""
        for name in self.identities:
            self.ask(name, Start())
        self.run(1.0)
        newcomers = Newcomers.FROM_NOW if self.is_encrypted else None
        made = self.obtain(FOUNDER, CreateRoom(_NAME, rule=JoinRule.PUBLIC, newcomers=newcomers), RoomMade)
        self.room = made.room
        self.joined[FOUNDER] = self.network.elapsed
        self.obtain(FOUNDER, AddRelay(self.room, self.contact(RELAY)), Sent)
        for name in (*MEMBERS[1:], THIEF):
            self._join(name)
            self.run(2.0)
        self.run(5.0)
        for name in (*MEMBERS, THIEF):
            if name not in self.joined:
                raise SetupFailed(
                    f"{name} did not join: {self.obtained(self._joining[name])}, seed {self.seed}"
                )
        self._read(FOUNDER)
        self.run(2.0)

    def act(self) -> None:
        """Let a random member send a message."""
        name = pick(self.luck, self._speakers())
        if name is not None:
            self._say(name)

    def change(self) -> None:
        """Let the founder change a level, the join rule, the name, or remove a member."""
        if not self.is_up(FOUNDER):
            return
        draw = self.luck.random()
        if draw < 0.35:
            name, level = self.luck.choice(MEMBERS[1:]), self.luck.randint(1, 49)
            person = self.identities[name].author
            self._decide(f"level of {name}", str(level), SetLevel(self.room, level, person=person))
        elif draw < 0.6:
            value = f"name{len(self.decided)}"
            self._decide("name", value, SetState(self.room, NAME, "", value.encode()))
        elif draw < 0.8:
            rule = self.luck.choice((JoinRule.PUBLIC, JoinRule.KNOCK))
            self._decide("rule", rule.value, SetRule(self.room, rule))
        elif "cid" not in self.removed:
            how = self.luck.choice((Membership.BAN, Membership.LEAVE))
            command = SetMembership(self.room, self.identities["cid"].author, how)
            self._decide("membership of cid", how.value, command)
            self.removed["cid"] = self.network.elapsed

    def welcome(self, name: str) -> None:
        """Let a newcomer join through the nodes that are up."""
        if self.rule is JoinRule.PUBLIC:
            self._join(name)

    @property
    def rule(self) -> JoinRule:
        """The join rule, as the founder set it last."""
        rules = [each.value for each in self.decided if each.place == "rule"]
        return JoinRule(rules[-1]) if rules else JoinRule.PUBLIC

    def revoke(self, name: str) -> None:
        """Let the founder revoke a device, which promotes an accomplice at the same moment, and sends a
        message."""
        if not self.is_up(FOUNDER) or not self.is_up(name):
            return
        self._decide("revocation", "there", RevokeInRoom(self.room, self.revocation_of(name)))
        self.revoked_at = self.network.elapsed
        self._cut_off = {each for each in self.identities if each not in self._within_earshot()}
        person = self.identities[ACCOMPLICE].author
        for command in (
            SetLevel(self.room, 100, person=person),
            SetRule(self.room, JoinRule.KNOCK),
            SetMembership(self.room, self.identities["bob"].author, Membership.BAN),
        ):
            self.ask(name, command)
        self._say(name)

    def part(self, names: Iterable[str], *, silent: bool) -> None:
        """See `OpenWorld.part`."""
        self._side = frozenset(names)
        super().part(self._side, silent=silent)
        for name in LEAVERS:
            if name in self._side and name in self.joined:
                self._maybe_leave(name)

    def _within_earshot(self) -> set[str]:
        """Return the nodes that hear the founder as soon as the thief: over a working link to the founder."""
        linked = {self.names[peer] for peer in self.network.linked(self.peer(FOUNDER))}
        apart = self.is_parted
        return {each for each in linked if not apart or (each in self._side) == (FOUNDER in self._side)}

    def _could_not_know(self, name: str) -> bool:
        """Return whether the revocation may still be on its way to a node."""
        since = max(self.revoked_at or 0.0, self.parted[-1] if self.parted else 0.0)
        return name in self._cut_off and self.network.elapsed <= since + _REJOINED

    def resume(self, name: str) -> None:
        """Go on reading; or leave, before any node is in reach."""
        if name in self.joined and name not in self.leaving:
            self.lives.setdefault(name, []).append(Lived())
            self._read(name)
            if name in LEAVERS:
                self._maybe_leave(name)
        elif (leaving := self.leaving.get(name)) is not None:
            self.lives.setdefault(name, []).append(Lived())
            if leaving.acked is None:
                leaving.request = self.ask(name, LeaveRoom(self.room))
        elif name in self._joining and name in NEWCOMERS:
            self._join(name)

    def finish(self) -> None:
        """Let all members send a last message; nodes that could not join try again."""
        for name in self.living(NEWCOMERS):
            if name in self._joining and name not in self.joined and self.rule is JoinRule.PUBLIC:
                self._join(name)
        for name in self._speakers():
            self._say(name)

    def _speakers(self) -> list[str]:
        out = (*self.removed, *self.leaving)
        return [name for name in self.living(MEMBERS) if name not in out]

    def _maybe_leave(self, name: str) -> None:
        """Let a node leave at times, but not while only the spending of nodes is watched."""
        if self.account.situation is not Situation.BUSY or self._leaving_luck.random() >= _LEAVES:
            return
        if name not in self.leaving and self.is_up(name):
            self.leaving[name] = Leaving(self.ask(name, LeaveRoom(self.room)), self.network.elapsed)

    def _join(self, name: str) -> None:
        known = [each for each in (*MEMBERS, RELAY) if self.is_up(each) and each != name]
        contacts = tuple(map(self.contact, known))
        self._joining[name] = self.ask(name, JoinRoom(self.room, None, contacts))

    def _read(self, name: str) -> None:
        self.lives.setdefault(name, [Lived()])
        self.ask(name, ReadRoom(_READER, self.room, since=0.0, name="application"))

    def _decide(self, place: str, value: str, command: AnyCommand) -> None:
        self.decided.append(Deciding(place, value, self.network.elapsed, self.ask(FOUNDER, command)))

    def _say(self, name: str) -> None:
        text = f"{name}:{len(self.said)}"
        request = self.ask(name, SendToRoom(self.room, (text.encode(),)))
        after = frozenset(each for life in self.lives.get(name, ()) for each in life.handed)
        late = name == THIEF and self.revoked_at is not None
        self.said.append(Saying(text, name, self.network.elapsed, request, after, late))

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Remember delivered events, and acknowledge them."""
        name = self.names[peer]
        life = self.lives[name][-1]
        ids = []
        for item in effect.items:
            if isinstance(item, Event) and item.kind == MESSAGE:
                life.handed.append(item.id)
                if self._could_not_know(name):
                    life.unwarned.add(item.id)
                ids.append(item.id)
            elif isinstance(item, Unreadable):
                life.unreadable.add(item.event.id)
        request = self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))
        self._consuming.append((request, life, tuple(ids)))

    def note(self) -> None:
        """See `OpenWorld.note`."""
        answers = self.network.answers
        now = self.network.elapsed
        for saying in self.said:
            answer = answers.get(saying.request)
            if saying.acked is None and isinstance(answer, Sent):
                saying.acked, saying.id = now, answer.ids[0]
        for deciding in self.decided:
            if deciding.acked is None and isinstance(answers.get(deciding.request), Sent):
                deciding.acked = now
        for name, request in self._joining.items():
            if name not in self.joined and isinstance(answers.get(request), RoomMade):
                self.joined[name] = now
                self._read(name)
        for leaving in self.leaving.values():
            answer = answers.get(leaving.request)
            # Where the answer was lost with a node, a later one says that the room is unknown by now.
            is_out = isinstance(answer, Declined) and answer.reason is Reason.UNKNOWN_ROOM
            if leaving.acked is None and (isinstance(answer, RoomLeft) or is_out):
                leaving.acked = now
        for request, life, ids in self._consuming:
            if isinstance(answers.get(request), Done):
                life.consumed.update(ids)
        self._consuming = [each for each in self._consuming if each[0] not in answers]

    def judge(self) -> list[Complaint]:
        """See `OpenWorld.judge`."""
        self.note()
        messages = [
            Message(
                saying.id,
                saying.text,
                saying.sender,
                saying.asked,
                saying.after,
                is_owed=saying.sender not in (*self.dead, *self.removed, *self.leaving, THIEF),
                is_forbidden=saying.is_late,
            )
            for saying in self.said
            if saying.acked is not None
        ]
        members, complaints = [], []
        for name in self.joined:
            if not self.is_up(name) or name in (*self.removed, *self.leaving, THIEF):
                continue
            state = self.answered(self.ask(name, ExamineState(self.room)))
            if not isinstance(state, StateIs):
                complaints.append(Complaint(Rule.STUCK, f"{name} cannot see its room: {state}"))
                continue
            lives = tuple(
                Seen(tuple(each.handed), frozenset(each.unreadable), frozenset(each.consumed))
                for each in self.lives[name]
            )
            unwarned = frozenset(each for life in self.lives[name] for each in life.unwarned)
            person, seen = self.identities[name].author, self._seen(state)
            members.append(Member(name, person, lives, seen, unwarned))
        complaints += [
            Complaint(Rule.STUCK, f"{name} never joined: {self.obtained(request)}")
            for name, request in self._joining.items()
            if name not in self.joined and self.is_up(name) and self.rule is JoinRule.PUBLIC
        ]
        banned = {each.place: each.acked for each in self.decided if each.value == Membership.BAN}
        outcasts = [
            Outcast("cid", at, frozenset(e for life in self.lives["cid"] for e in life.handed))
            for at in banned.values()
            if at is not None
        ]
        leavers = [
            Leaver(name, each.acked, frozenset(e for life in self.lives.get(name, ()) for e in life.handed))
            for name, each in self.leaving.items()
            if each.acked is not None
        ]
        complaints += [
            Complaint(Rule.STUCK, f"{name} could not leave: {self.obtained(each.request)}")
            for name, each in self.leaving.items()
            if each.acked is None and self.is_up(name)
        ]
        complaints += self._accusations()
        return complaints + judge_room(messages, self._rulings(), members, outcasts, FOUNDER, leavers)

    def _accusations(self) -> list[Complaint]:
        """Return a complaint for each fault that a member found in the relay, which is honest."""
        complaints = []
        for name in self.joined:
            if not self.is_up(name):
                continue
            told = self.answered(self.ask(name, ExamineRooms()))
            for room in told.rooms if isinstance(told, RoomsAre) else ():
                complaints += [
                    Complaint(
                        Rule.ACCUSED, f"{name} has found the relay {self.names[each.relay]} {each.fault}"
                    )
                    for each in room.relays
                    if each.fault is not None
                ]
        return complaints

    def _rulings(self) -> list[Ruling]:
        """Return the decisions, joins and leaves."""
        rulings = [Ruling("rule", JoinRule.PUBLIC.value, 0.0), Ruling("name", _NAME, 0.0)]
        rulings += [
            Ruling(f"membership of {name}", Membership.JOIN.value, at)
            for name, at in self.joined.items()
            if name != THIEF
        ]
        rulings += [
            Ruling(f"membership of {name}", Membership.JOIN.value, self.network.elapsed, is_sure=False)
            for name in self._joining
            if name not in self.joined
        ]
        rulings += [
            Ruling(each.place, each.value, each.asked, each.acked is not None)
            for each in self.decided
            if each.place != "revocation"
        ]
        rulings += [
            Ruling(
                f"membership of {name}",
                Membership.LEAVE.value,
                each.asked if each.acked is None else each.acked,
                each.acked is not None and name not in self.dead,
            )
            for name, each in self.leaving.items()
        ]
        return rulings

    def _seen(self, state: StateIs) -> tuple[tuple[str, str], ...]:
        """Return what one member sees of the state that rulings may set."""
        by_person = {self.identities[name].author: name for name in (*MEMBERS, *NEWCOMERS)}
        seen = [("rule", state.rule.value)]
        for member in state.members:
            name = by_person.get(member.person)
            if name is not None:
                seen.append((f"membership of {name}", member.membership.value))
        seen += [
            (f"level of {by_person[person]}", str(level))
            for person, level in state.power.users.items()
            if person in by_person
        ]
        seen += [("name", entry.event.body.decode()) for entry in state.entries if entry.kind == NAME]
        return tuple(seen)
