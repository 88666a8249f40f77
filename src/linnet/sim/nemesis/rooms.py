"""A room in the open world: members, a relay, a stolen device, and a founder who decides."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.delivery.commands import Consumed, Done
from linnet.delivery.items import Unreadable
from linnet.event.event import MESSAGE, Event
from linnet.identity.cards import revoke
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Command, Handed, Start
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    ExamineState,
    JoinRoom,
    ReadRoom,
    RevokeInRoom,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetRule,
    SetState,
)
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.content import NAME, JoinRule, Membership, Newcomers
from linnet.rooms.results import RoomMade, Sent, StateIs
from linnet.sim.judges.rooms import Member, Message, Outcast, Ruling, Seen, judge_room
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.named_nodes import SetupFailed
from linnet.sim.nemesis.faults import Cast
from linnet.sim.nemesis.open_world import OpenWorld, person_key, pick, second_device
from linnet.trace.sink import TraceSink

FOUNDER, THIEF, RELAY, ACCOMPLICE = "ann", "ann-phone", "relay", "dan"
MEMBERS = (FOUNDER, "bob", "cid", ACCOMPLICE)
NEWCOMERS = ("eve", "fay", "gus")
_READER = 1
_REJOINED = 10.0
"""Seconds in which word goes round, once there is no partition."""
_NAME = "open"


class Saying(Struct):
    """Something that is said."""

    text: str
    sender: str
    asked: float
    request: int
    after: frozenset[EventId]
    is_late: bool
    """Whether a device said it after its owner had revoked it."""
    is_ahead: bool
    """Whether the sender's clock was ahead: such a message is refused, and the sender is told."""
    acked: float | None = None
    id: EventId = EventId(b"")


class Deciding(Struct):
    """Something that the founder decides."""

    place: str
    value: str
    asked: float
    request: int
    acked: float | None = None


class Lived(Struct):
    """What an application was handed in one life of its node."""

    handed: list[EventId] = field(default_factory=list)
    unreadable: set[EventId] = field(default_factory=set)
    consumed: set[EventId] = field(default_factory=set)
    unwarned: set[EventId] = field(default_factory=set)
    """What came before word of the revocation could: others were nearer to the thief."""


class RoomsWay(OpenWorld):
    """One room."""

    way = "rooms"

    def __init__(self, seed: int, trace: TraceSink | None = None) -> None:
        super().__init__(seed, trace)
        self.room = TopicId(b"")
        self.is_encrypted = seed % 3 == 0
        self.said: list[Saying] = []
        self.decided: list[Deciding] = []
        self.lives: dict[str, list[Lived]] = {}
        self.joined: dict[str, float] = {}
        self.removed: dict[str, float] = {}
        self.revoked_at: float | None = None
        self._cut_off: set[str] = set()
        """Who could not hear of it at once when the founder revoked a device."""
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

    def identity(self, name: str) -> Identity:
        """The thief has a device of the founder."""
        return second_device(self.seed, FOUNDER, name) if name == THIEF else super().identity(name)

    def configured(self, name: str) -> PeerConfig:
        """The relay is open to all."""
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name == RELAY else None
        return PeerConfig(listens=(self.address(name),), relay=relay)

    def set_up(self) -> None:
        """The founder founds, all but the newcomers join."""
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
        """Some member says a word."""
        name = pick(self.luck, [each for each in self.living(MEMBERS) if each not in self.removed])
        if name is not None:
            self._say(name)

    def change(self) -> None:
        """The founder changes a level, the rule, the name, or puts somebody out."""
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
        """Somebody joins by whoever is there."""
        if self.rule is JoinRule.PUBLIC:
            self._join(name)

    @property
    def rule(self) -> JoinRule:
        """Who may join, as the founder said last."""
        rules = [each.value for each in self.decided if each.place == "rule"]
        return JoinRule(rules[-1]) if rules else JoinRule.PUBLIC

    def revoke(self, name: str) -> None:
        """The founder revokes a device, which raises an accomplice at the same moment, and speaks."""
        if not self.is_up(FOUNDER) or not self.is_up(name):
            return
        device = self.identities[name].card.device
        word = revoke(person_key(self.seed, FOUNDER), device, int(self.network.now))
        self._decide("revocation", "there", RevokeInRoom(self.room, word))
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

    def _within_earshot(self) -> set[str]:
        """Who hears the founder as soon as the thief: over a link to the founder that carries anything."""
        linked = {self.names[peer] for peer in self.network.linked(self.peer(FOUNDER))}
        apart = self.is_parted
        return {each for each in linked if not apart or (each in self._side) == (FOUNDER in self._side)}

    def _could_not_know(self, name: str) -> bool:
        """Whether word of the revocation may still be on its way to somebody."""
        since = max(self.revoked_at or 0.0, self.parted[-1] if self.parted else 0.0)
        return name in self._cut_off and self.network.elapsed <= since + _REJOINED

    def resume(self, name: str) -> None:
        """Applications go on reading."""
        if name in self.joined:
            self.lives.setdefault(name, []).append(Lived())
            self._read(name)
        elif name in self._joining and name in NEWCOMERS:
            self._join(name)

    def finish(self) -> None:
        """All members say a last word; who could not join tries again."""
        for name in self.living(NEWCOMERS):
            if name in self._joining and name not in self.joined and self.rule is JoinRule.PUBLIC:
                self._join(name)
        for name in self.living(MEMBERS):
            if name not in self.removed:
                self._say(name)

    def _join(self, name: str) -> None:
        known = [each for each in (*MEMBERS, RELAY) if self.is_up(each) and each != name]
        contacts = tuple(map(self.contact, known))
        self._joining[name] = self.ask(name, JoinRoom(self.room, None, contacts))

    def _read(self, name: str) -> None:
        self.lives.setdefault(name, [Lived()])
        self.ask(name, ReadRoom(_READER, self.room, since=0.0, name="application"))

    def _decide(self, place: str, value: str, command: Command) -> None:
        self.decided.append(Deciding(place, value, self.network.elapsed, self.ask(FOUNDER, command)))

    def _say(self, name: str) -> None:
        text = f"{name}:{len(self.said)}"
        request = self.ask(name, SendToRoom(self.room, (text.encode(),)))
        after = frozenset(each for life in self.lives.get(name, ()) for each in life.handed)
        late = name == THIEF and self.revoked_at is not None
        ahead = self.offsets.get(name, 0.0) > 0.0
        self.said.append(Saying(text, name, self.network.elapsed, request, after, late, ahead))

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """What an application does: remember, and say that it has."""
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
                is_owed=not saying.is_ahead and saying.sender not in (*self.dead, *self.removed, THIEF),
                is_forbidden=saying.is_late,
            )
            for saying in self.said
            if saying.acked is not None
        ]
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
        members, complaints = [], []
        for name in self.joined:
            if not self.is_up(name) or name in self.removed or name == THIEF:
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
        return complaints + judge_room(messages, rulings, members, outcasts, FOUNDER)

    def _seen(self, state: StateIs) -> tuple[tuple[str, str], ...]:
        """What one member sees of what there may be rulings about."""
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
