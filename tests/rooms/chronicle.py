"""Histories of rooms for tests: people who say things in a room, with real keys and signatures.

`Chronicle` signs what it is told to, wherever in the history. `wild_history` lets several nodes act on what
each of them knows, with clocks that differ and knowledge that spreads slowly, so that races of all sorts
come up, and events that no rule allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from random import Random

from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.event.event import MESSAGE, Event, Spot, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.identity.cards import issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.peer.config import Identity
from linnet.rooms.auth.control_graph import NO_TOPIC, ControlDag
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    CREATE,
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    RELAY,
    RETENTION,
    REVOCATION,
    ROOM_VERSION,
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Relay,
    Retention,
    Revoked,
    body_of,
    member_key,
)
from linnet.rooms.invitations import Ticket, issue_ticket
from linnet.sim.seeded_random import SeededEntropy
from linnet.testing.identities import known_identity

START_MS = 1_700_000_000_000


@lru_cache(maxsize=1024)
def person(name: str) -> Identity:
    """The one device of the person of this name; `name/other` is a second device of theirs."""
    owner, _, other = name.partition("/")
    known = known_identity(name)
    if not other:
        return known
    card = known.card
    issued = issue_card(person_key(owner), card.device_key, card.not_before, card.not_after, other)
    return Identity(known.device, issued)


def person_key(name: str) -> SigningKey:
    """The key that signs the cards and revocations of the person of this name."""
    return SigningKey.generate(SeededEntropy(0, f"identity/{name}"))


def references(event: Event) -> tuple[EventId, ...]:
    """All that an event refers to, each once."""
    tail = event.tail
    own = () if event.prev is None else (event.prev,)
    return tuple(dict.fromkeys((*(tail.deps or ()), *(tail.concurrent or ()), *(tail.control or ()), *own)))


class Chronicle:
    """One room, as somebody who holds everyone's keys writes it."""

    def __init__(self, founder: str, creators: Sequence[str] = (), time: int = 0, room: int = 0) -> None:
        self.units: dict[EventId, Verified] = {}
        self._chains: dict[tuple[AuthorId, DeviceId], tuple[int, EventId]] = {}
        self._pasts: dict[EventId, frozenset[EventId]] = {}
        self.room = NO_TOPIC
        others = tuple(person(name).author for name in creators)
        content = Create(ROOM_VERSION, others, room.to_bytes(16, "big"))
        self.create = self.sign(founder, CREATE, "", content, (), time=time)
        self.room = TopicId(self.create.id)

    @property
    def events(self) -> tuple[Event, ...]:
        """All that was written, causes first."""
        return tuple(unit.events[0] for unit in self.units.values())

    def event(self, event: EventId) -> Event:
        """One of them."""
        return self.units[event].events[0]

    def sign(
        self,
        who: str,
        kind: str,
        key: str | None,
        content: Struct | bytes,
        control: Iterable[EventId | Event],
        *,
        deps: Iterable[EventId | Event] | None = None,
        time: int | None = None,
        fork: bool = False,
    ) -> Event:
        """Write an event of this person, which need not be allowed.

        It depends on its control heads, if on nothing else. Times are milliseconds after `START_MS`, one
        per event unless they are given. `fork`: as if the person did not know what it said before.
        """
        return self.keep(self.make(who, kind, key, content, control, deps=deps, time=time, fork=fork))

    def keep(self, unit: Verified) -> Event:
        """Write what was made."""
        event = unit.events[0]
        self.units[event.id] = unit
        self._chains[event.author, event.device] = event.seq or 0, event.id
        return event

    def make(
        self,
        who: str,
        kind: str,
        key: str | None,
        content: Struct | bytes,
        control: Iterable[EventId | Event],
        *,
        deps: Iterable[EventId | Event] | None = None,
        time: int | None = None,
        fork: bool = False,
    ) -> Verified:
        """The same without writing it."""
        identity = person(who)
        heads = tuple(dict.fromkeys(_id(each) for each in control))
        on = heads if deps is None else tuple(dict.fromkeys(_id(each) for each in deps))
        seq, prev = (
            (-1, None) if fork else self._chains.get((identity.author, identity.card.device), (-1, None))
        )
        height = 1 + max(
            (self._height(each) for each in (*heads, *on, *((prev,) if prev else ()))), default=-1
        )
        clock = START_MS + (len(self.units) if time is None else time)
        body = content if isinstance(content, bytes) else body_of(content)
        tail = Tail(on or None, None, height, heads or None, kind, key, clock, None, body)
        card = identity.card
        return sign_unit(identity.device, Spot(self.room, card.person, card.device, seq + 1, prev), [tail])

    def member(
        self,
        who: str,
        of: str,
        membership: Membership,
        control: Iterable[EventId | Event],
        *,
        ticket: Ticket | None = None,
        time: int | None = None,
    ) -> Event:
        """A change of somebody's membership."""
        key = member_key(person(of).author)
        return self.sign(who, MEMBER, key, Member(membership, None, ticket), control, time=time)

    def precedes(self, event: EventId, other: EventId) -> bool:
        """Whether the event is in the causal past of the other."""
        return event in self._past(other)

    def _past(self, event: EventId) -> frozenset[EventId]:
        past = self._pasts.get(event)
        if past is None:
            parents = references(self.event(event))
            past = frozenset(parents).union(*map(self._past, parents))
            self._pasts[event] = past
        return past

    def _height(self, event: EventId) -> int:
        return self.event(event).tail.height or 0


def ticket_of(inviter: str, room: TopicId, guest: str | None = None, expires: int = 10**6) -> Ticket:
    """An invitation; `expires` is in milliseconds after `START_MS`."""
    identity = person(inviter)
    one = None if guest is None else person(guest).author
    return issue_ticket(identity.device, identity.card, room, one, START_MS + expires, bytes(8))


def relay_key(name: str) -> str:
    """The key of the relay with this identity."""
    return to_text(Sort.DEVICE, person(name).peer)


class Governed(Chronicle):
    """One room, of which every control event is judged and added as soon as it is written."""

    def __init__(self, founder: str, creators: Sequence[str] = (), time: int = 0) -> None:
        super().__init__(founder, creators, time)
        self.dag = ControlDag(self.create)
        self.admit(founder, founder, Membership.JOIN)

    def put(self, event: Event) -> Event:
        """Add what must be allowed."""
        assert self.dag.add(event) is None
        return event

    def act(
        self, who: str, kind: str, key: str, content: Struct | bytes, *, time: int | None = None
    ) -> Event:
        """A control event after all others."""
        return self.put(self.sign(who, kind, key, content, self.dag.heads, time=time))

    def admit(self, who: str, of: str, membership: Membership, *, ticket: Ticket | None = None) -> Event:
        """A change of somebody's membership, after all others."""
        return self.put(self.member(who, of, membership, self.dag.heads, ticket=ticket))


def _id(event: EventId | Event) -> EventId:
    return event.id if isinstance(event, Event) else event


class _Node:
    """One of those who act, and what it knows."""

    def __init__(self, name: str, create: Event, skew: int) -> None:
        self.name = name
        self.skew = skew
        self.dag = ControlDag(create)
        self.known: dict[EventId, None] = {create.id: None}
        self.tops: dict[EventId, None] = {create.id: None}

    def take(self, event: Event) -> None:
        if event.id in self.known:
            return
        self.known[event.id] = None
        refused = self.dag.add(event) if event.kind in CONTROL_KINDS else self.dag.judge(event)
        if refused is None:
            for each in references(event):
                self.tops.pop(each, None)
            self.tops[event.id] = None


Deed = tuple[str, str | None, Struct | bytes]


class Wild(Struct, frozen=True):
    """How wild a history is."""

    people: int = 5
    steps: int = 40
    skew: int = 20
    """Milliseconds by which clocks differ at most, either way; each step takes one."""
    spread: float = 0.5
    """How often a step spreads knowledge instead of adding to it."""
    stale: float = 0.08
    """How often an event names old control heads, as an attacker's would."""
    together: bool = False
    """Whether everyone hears of everything at once, so that nothing is concurrent."""
    wrong: float = 0.1
    """How often it is not asked first whether the event is allowed."""


def wild_history(luck: Random, wild: Wild = Wild()) -> Chronicle:  # noqa: B008
    """A room of people at odds with each other; the first is its creator."""
    names = [f"person {number}" for number in range(wild.people)]
    chronicle = Chronicle(names[0], room=luck.getrandbits(64))
    skews = [luck.randint(-wild.skew, wild.skew) for _ in names]
    nodes = [_Node(name, chronicle.create, skew) for name, skew in zip(names, skews, strict=True)]
    heads: tuple[EventId, ...] = (chronicle.create.id,)
    for who, kind, key, content in _beginning(names, luck):
        heads = (chronicle.sign(who, kind, key, content, heads).id,)
    for node in nodes:
        for event in chronicle.events:
            node.take(event)
    for _ in range(wild.steps):
        node = luck.choice(nodes)
        spreads = not wild.together and luck.random() < wild.spread
        source = chronicle.units if wild.together else luck.choice(nodes).known if spreads else {}
        for event in chronicle.events:
            if event.id in source:
                node.take(event)
        if not spreads:
            _act(node, chronicle, names, luck, wild)
    return chronicle


def _beginning(names: Sequence[str], luck: Random) -> Iterator[tuple[str, str, str, Struct]]:
    """The creator comes, says who has power, and lets others in."""
    founder, keys = names[0], {name: member_key(person(name).author) for name in names}
    levels = {person(name).author: luck.choice((0, 50, 50, 100)) for name in names[1:]}
    yield founder, MEMBER, keys[founder], Member(Membership.JOIN)
    yield founder, POWER, "", Power(users=levels, invite=luck.choice((0, 50)))
    yield founder, JOIN_RULES, "", JoinRules(luck.choice(tuple(JoinRule)))
    for name in names[1:]:
        if luck.random() < 0.8:
            yield founder, MEMBER, keys[name], Member(Membership.INVITE)
            yield name, MEMBER, keys[name], Member(Membership.JOIN)


def _act(node: _Node, chronicle: Chronicle, names: Sequence[str], luck: Random, wild: Wild) -> None:
    control: tuple[EventId, ...] = node.dag.heads[:32]
    if luck.random() < wild.stale:
        control = (luck.choice(node.dag.between(())),)
    deps = sorted(node.tops)[:32]
    time = max(0, len(chronicle.units) + wild.skew + node.skew)
    for _ in range(6):
        kind, key, content = luck.choice(_DEEDS)(node, names, luck)
        unit = chronicle.make(node.name, kind, key, content, control, deps=deps, time=time)
        if luck.random() < wild.wrong or node.dag.judge(unit.events[0]) is None:
            break
    node.take(chronicle.keep(unit))


def _own(membership: Membership) -> Callable[[_Node, Sequence[str], Random], Deed]:
    def deed(node: _Node, names: Sequence[str], luck: Random) -> Deed:
        return MEMBER, member_key(person(node.name).author), Member(membership)

    return deed


def _other(membership: Membership) -> Callable[[_Node, Sequence[str], Random], Deed]:
    def deed(node: _Node, names: Sequence[str], luck: Random) -> Deed:
        return MEMBER, member_key(person(luck.choice(names)).author), Member(membership)

    return deed


def _by_ticket(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    ticket = ticket_of(luck.choice(names), node.dag.room)
    return MEMBER, member_key(person(node.name).author), Member(Membership.JOIN, None, ticket)


def _power(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    now = node.dag.view().power()
    one = person(luck.choice(names)).author
    users = {**now.users, one: luck.choice((0, 0, 50, 60, 100))}
    kinds = {**now.events, NAME: luck.choice((0, 50, 100))} if luck.random() < 0.3 else now.events
    founder = node.dag.create.sender
    return POWER, "", Power(users={who: users[who] for who in users if who != founder}, events=kinds)


def _rules(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    return JOIN_RULES, "", JoinRules(luck.choice(tuple(JoinRule)))


def _relay(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    name = luck.choice(names[-2:])
    return RELAY, relay_key(name), Relay(luck.random() < 0.5, person(name).author)


def _retention(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    return RETENTION, "", Retention(luck.choice((None, 1000, 2000)))


def _revocation(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    if luck.random() < 0.8:  # it ends what the person can do
        return _message(node, names, luck)
    device = person(node.name).card.device
    return REVOCATION, device.hex(), Revoked(revoke(person_key(node.name), device, 0))


def _name(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    return NAME, "", bytes([luck.randrange(256)])


def _message(node: _Node, names: Sequence[str], luck: Random) -> Deed:
    return MESSAGE, None, b"hello"


_DEEDS = (
    *(_own(Membership.JOIN),) * 4,
    _own(Membership.LEAVE),
    _own(Membership.KNOCK),
    *(_other(Membership.INVITE),) * 2,
    *(_other(Membership.LEAVE),) * 2,
    *(_other(Membership.BAN),) * 2,
    _by_ticket,
    *(_power,) * 3,
    *(_rules,) * 2,
    _relay,
    _retention,
    _name,
    _name,
    *(_message,) * 3,
    _revocation,
)
