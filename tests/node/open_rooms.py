"""A room of real nodes in the open world: a founder who decides, members who speak, and a relay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from msgspec import Struct
from tests.node.crash_world import BRISK
from tests.node.lasting_reader import UNREACHED
from tests.node.struck_world import SUBSCRIBES, Recorder, StruckWorld

from linnet.api.items import EventView
from linnet.api.rooms import AskToJoin
from linnet.core.ids import EventId, TopicId
from linnet.event.event import MESSAGE
from linnet.identity.addresses import parse_contact
from linnet.identity.text import Sort, from_text
from linnet.node.client import ControlClient
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    ExamineState,
    ReadRoom,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetState,
    StateIs,
)
from linnet.rooms.event_types import NAME, JoinRule, Membership
from linnet.sim.judges.rooms import Member, Message, Outcast, Ruling, Seen, judge_room
from linnet.sim.judges.verdict import Complaint, Rule
from linnet.sim.nemesis.faults import Cast

FOUNDER, RELAY, BANNED = "ann", "relay", "cid"
MEMBERS = (FOUNDER, "bob", BANNED, "dan")
NEWCOMERS = ("eve",)
CALLED = "open world"


class Saying(Struct):
    """Something that a member says."""

    text: str
    sender: str
    asked: float
    after: frozenset[EventId]
    is_ahead: bool
    """Whether the sender's clock was ahead: such a message is refused, and the sender is told."""
    acked: float | None = None
    id: EventId = EventId(b"")


class Deciding(Struct):
    """Something that the founder decides."""

    place: str
    value: str
    asked: float
    acked: float | None = None


class OpenRooms(StruckWorld):
    """One room; in every second seed it is encrypted, and one joins by invitation."""

    way = "rooms"

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(directory, (RELAY, *MEMBERS), NEWCOMERS, BRISK, seed)
        self.rule = JoinRule.INVITE if seed % 2 else JoinRule.PUBLIC
        self.room = TopicId(b"")
        self.said: list[Saying] = []
        self.decided: list[Deciding] = []
        self.joined: dict[str, float] = {}
        self.removed: dict[str, float] = {}
        self._applications: dict[str, Recorder] = {}
        self._coming: set[str] = set()

    @property
    def cast(self) -> Cast:
        """See `StruckWorld.cast`."""
        return Cast(
            nodes=(RELAY, *MEMBERS),
            anchors=(RELAY, FOUNDER),
            spared=MEMBERS,
            fixed=(),
            newcomers=NEWCOMERS,
        )

    @property
    def acknowledged(self) -> int:
        """See `StruckWorld.acknowledged`."""
        return sum(saying.acked is not None for saying in self.said)

    def set_up(self) -> None:
        """The founder founds, all but the newcomers join."""
        self.start_these((RELAY, *MEMBERS))
        founder = self.nodes[FOUNDER].control
        self.room = founder.ask(CreateRoom(CALLED, rule=self.rule)).room
        self.joined[FOUNDER] = time.monotonic()
        founder.ask(AddRelay(self.room, parse_contact(self.contact(RELAY))))
        for name in MEMBERS[1:]:
            self._join(name)
        for name in MEMBERS:
            self._read(name).await_subscription(SUBSCRIBES)

    def act(self) -> None:
        """Some member says a word."""
        living = [name for name in self.living(MEMBERS) if name not in self.removed]
        if living:
            self.call(partial(self._say, self.luck.choice(living)))

    def change(self) -> None:
        """The founder changes a level or the name, or puts somebody out."""
        if not self.is_up(FOUNDER):
            return
        control, room, draw = self.nodes[FOUNDER].control, self.room, self.luck.random()
        if draw < 0.4:
            name, level = self.luck.choice(MEMBERS[1:]), self.luck.randint(1, 49)
            person = self.nodes[name].author
            self._decide(f"level of {name}", str(level), lambda: control.ask(SetLevel(room, level, person)))
        elif draw < 0.8 or BANNED in self.removed:
            value = f"name{len(self.decided)}"
            self._decide("name", value, lambda: control.ask(SetState(room, NAME, text=value)))
        else:
            how = self.luck.choice((Membership.BAN, Membership.LEAVE))
            person = self.nodes[BANNED].author
            self.removed[BANNED] = time.monotonic()
            self._decide(
                f"membership of {BANNED}", how.value, lambda: control.ask(SetMembership(room, person, how))
            )

    def welcome(self, name: str) -> None:
        """Somebody joins by whoever is there."""
        self._coming.add(name)
        self.insist(partial(self._come, name))

    def _come(self, name: str) -> bool:
        self._join(name)
        self._read(name)
        return True

    def finish(self) -> None:
        """All members say a last word."""
        for name in self.living((*MEMBERS, *NEWCOMERS)):
            if name in self.joined and name not in self.removed:
                self.call(partial(self._say, name))

    def _join(self, name: str) -> None:
        node = self.nodes[name]
        if self.rule is JoinRule.INVITE:
            self.nodes[FOUNDER].control.ask(SetMembership(self.room, node.author, Membership.INVITE))
        known = [each for each in (*MEMBERS, RELAY) if self.is_up(each) and each != name]
        contacts = tuple(parse_contact(self.contact(each)) for each in known)
        node.control.ask(AskToJoin(room=self.room, contacts=contacts))
        self.joined[name] = time.monotonic()

    def _read(self, name: str) -> Recorder:
        def subscribe(reading: ControlClient) -> Iterator[object]:
            return reading.lines(ReadRoom(0, self.room, 0.0, "application"), manual=True)

        luck = Random(f"{self.seed} {name}")
        reader = Recorder(self.nodes[name], "application", subscribe, _event_of, luck)
        self._applications[name] = reader
        self.read(reader)
        return reader

    def _decide(self, place: str, value: str, act: Callable[[], object]) -> None:
        """Decisions are judged in their order: one after the other, as a person makes them."""
        deciding = Deciding(place, value, time.monotonic())
        self.decided.append(deciding)

        def do() -> None:
            act()
            deciding.acked = time.monotonic()

        self.call(do)

    def _say(self, name: str) -> None:
        text = f"{name}:{len(self.said)}:{self.luck.getrandbits(32):08x}"
        after = frozenset(
            EventId(_event_of(each.item) or b"")
            for each in list(self._applications[name].taken)
            if _is_word(each.item)
        )
        saying = Saying(text, name, time.monotonic(), after, self.ahead[name] > 0.0)
        self.said.append(saying)
        sent = self.nodes[name].control.ask(SendToRoom(self.room, (text.encode(),)))
        saying.id, saying.acked = sent.ids[0], time.monotonic()

    def judge(self) -> list[Complaint]:
        """See `StruckWorld.judge`."""
        members, complaints = [], []
        for name, node in self.nodes.items():
            if name not in self.joined or name in {*self.removed, *self.dead}:
                continue
            try:
                state = node.control.ask(ExamineState(self.room))
            except UNREACHED as error:
                complaints.append(Complaint(Rule.STUCK, f"{name} cannot see its room: {error}"))
                continue
            members.append(Member(name, node.author, self._lives(name), self._seen(state)))
        complaints += [
            Complaint(Rule.STUCK, f"{name} never joined") for name in self._coming if name not in self.joined
        ]
        outcasts = [
            Outcast(BANNED, each.acked, frozenset(e for life in self._lives(BANNED) for e in life.handed))
            for each in self.decided
            if each.value == Membership.BAN and each.acked is not None
        ]
        return complaints + judge_room(self._messages(), self._rulings(), members, outcasts, FOUNDER)

    def _messages(self) -> list[Message]:
        """All that was acknowledged, and what was not but came about: a kill took the answer away."""
        seen = {
            each.item.text: EventId(_event_of(each.item) or b"")
            for reader in list(self.readers)
            for each in list(reader.taken)
            if isinstance(each.item, EventView) and each.item.text is not None
        }
        return [
            Message(
                saying.id or seen[saying.text],
                saying.text,
                saying.sender,
                saying.asked,
                saying.after,
                is_owed=saying.acked is not None
                and not saying.is_ahead
                and saying.sender not in {*self.dead, *self.removed},
            )
            for saying in list(self.said)
            if saying.acked is not None or saying.text in seen
        ]

    def _rulings(self) -> list[Ruling]:
        rulings = [Ruling("rule", self.rule.value, 0.0), Ruling("name", CALLED, 0.0)]
        rulings += [
            Ruling(f"membership of {name}", Membership.JOIN.value, at) for name, at in self.joined.items()
        ]
        rulings += [
            Ruling(f"membership of {name}", how.value, time.monotonic(), is_sure=False)
            for name in self._coming
            if name not in self.joined
            for how in (Membership.INVITE, Membership.JOIN)
        ]
        rulings += [
            Ruling(each.place, each.value, each.asked, each.acked is not None) for each in self.decided
        ]
        return rulings

    def _lives(self, name: str) -> tuple[Seen, ...]:
        # Who comes later to an encrypted room reads from then on.
        is_late = self.rule is JoinRule.INVITE and name in NEWCOMERS
        before = frozenset(
            saying.id for saying in list(self.said) if is_late and saying.asked < self.joined[name]
        )
        return tuple(
            Seen(
                tuple(EventId(_event_of(item) or b"") for item in items if _is_word(item)),
                before | frozenset(_unreadable_in(items)),
                frozenset(EventId(each) for each in handled),
            )
            for items, handled in self._applications[name].by_life
        )

    def _seen(self, state: StateIs) -> tuple[tuple[str, str], ...]:
        """What one member sees of what there may be rulings about."""
        names = {node.author: name for name, node in self.nodes.items() if name != RELAY}
        seen = [("rule", state.rule.value)]
        for member in state.members:
            if member.person in names:
                name = names[member.person]
                seen.append((f"membership of {name}", member.membership.value))
                if member.level:
                    seen.append((f"level of {name}", str(member.level)))
        seen += [("name", entry.event.body.decode()) for entry in state.entries if entry.kind == NAME]
        return tuple(seen)


def _event_of(item: object) -> bytes | None:
    """What can be read is handled; what cannot comes again once it can be."""
    return from_text(Sort.EVENT, item.id) if isinstance(item, EventView) and not item.unreadable else None


def _is_word(item: object) -> bool:
    return isinstance(item, EventView) and item.kind == MESSAGE and not item.unreadable


def _unreadable_in(items: list[object]) -> Iterator[EventId]:
    for item in items:
        if isinstance(item, EventView) and item.unreadable is not None:
            yield EventId(from_text(Sort.EVENT, item.id))
