"""A group whose members act on partial knowledge, and who is in it by the bare definition.

Nothing of the package is asked what the answer is: `Past` reckons from the causal order alone, with sets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.groups import membership, removal_cover
from linnet.groups.labels import Device, MemberId
from linnet.groups.membership import EMPTY, History, Member
from linnet.groups.removal_cover import Cover

OPS = ("create", "add", "remove")
SEEDS = ("create", "remove", "update")


def op_id(name: str) -> EventId:
    """An id that has nothing to do with the order of anything."""
    return EventId(hashlib.sha256(name.encode()).digest())


def mid(name: str) -> MemberId:
    """The member of that name."""
    return MemberId(hashlib.sha256(name.encode()).digest()[:12] + name.encode().rjust(4))


def name_of(id: MemberId) -> str:
    """The name of a member."""
    return id[12:].decode().strip()


def member(name: str, op: EventId) -> Member:
    """A member whose device is called the same, but for a number at the end."""
    author = AuthorId(name.rstrip("0123456789").encode().ljust(32, b"."))
    return Member(mid(name), Device(author, DeviceId(b"device..")), name.encode().ljust(32, b"."), op)


def names(history: History, viewer: str | None = None) -> str:
    """A view as a word."""
    ids = membership.view(history, None if viewer is None else mid(viewer))
    assert ids == tuple(sorted(ids))
    return " ".join(sorted(map(name_of, ids)))


class Deed(NamedTuple):
    """Something that a member did: an operation, or an acknowledgement of one."""

    op: EventId
    kind: str
    sender: str
    whom: tuple[str, ...]
    acked: int | None
    after: tuple[int, ...]
    view: str
    """Its author's view just before."""


def apply(history: History, deed: Deed, deeds: Sequence[Deed]) -> History:
    """What a member makes of a deed."""
    if deed.kind == "create":
        return membership.create(history, deed.op, [member(name, deed.op) for name in deed.whom])
    if deed.kind == "add":
        return membership.add(history, deed.op, mid(deed.sender), member(deed.whom[0], deed.op))
    if deed.kind == "remove":
        return membership.remove(history, deed.op, mid(deed.sender), [mid(name) for name in deed.whom])
    if deed.acked is not None:
        return membership.ack(history, mid(deed.sender), deeds[deed.acked].op)
    return history


class Replica:
    """What one member knows: as it is, compacted now and then, and which removals its seeds came after."""

    def __init__(self, name: str, history: History, had: set[int]) -> None:
        self.name = name
        self.history, self.had = history, had
        self.cover, self.sets = removal_cover.NO_COVER, list[frozenset[EventId]]()
        self.small, self.small_cover = history, removal_cover.NO_COVER
        self.last: int | None = None
        self.active = True

    def healthy(self) -> bool:
        """By the definition: one seed came after all removals."""
        return any(membership.removes(self.history) <= each for each in self.sets)

    def take(self, deed: Deed, deeds: Sequence[Deed]) -> None:
        """Process a deed, without the answer to it."""
        self.history = apply(self.history, deed, deeds)
        known = deed.kind == "create" or membership.ever(self.small, mid(deed.sender)) is not None
        if known:
            self.small = apply(self.small, deed, deeds)
        if not membership.sees(self.history, None, mid(self.name)):
            self.active = False
        elif deed.kind in SEEDS and membership.sees(self.history, mid(deed.sender), mid(self.name)):
            self.sets.append(membership.removes_seen_by(self.history, mid(deed.sender)))
            self.cover = self._covered(self.cover, self.history, deed.sender)
            self.small_cover = self._covered(self.small_cover, self.small, deed.sender)

    def _covered(self, cover: Cover, history: History, sender: str) -> Cover:
        if sender == self.name:
            return removal_cover.cover_by_own_seed(history)
        return removal_cover.cover_by_seed(cover, history, mid(sender))


class World:
    """All members of one group, and all that they did."""

    def __init__(self, first: Iterable[str]) -> None:
        whom = tuple(first)
        self.deeds: list[Deed] = []
        self.replicas: dict[str, Replica] = {}
        self.deeds.append(Deed(op_id("create"), "create", whom[0], whom, None, (), ""))
        for name in whom:
            self.replicas[name] = Replica(name, EMPTY, {0})
            self.replicas[name].take(self.deeds[0], self.deeds)
        self.replicas[whom[0]].last = 0

    def add(self, by: str, name: str) -> int:
        """A member adds a new one, who begins with what the first knows."""
        at = self._do(by, "add", (name,))
        adder = self.replicas[by]
        newcomer = self.replicas[name] = Replica(name, adder.history, set(adder.had))
        newcomer.small = adder.small
        healthy = adder.healthy()
        newcomer.sets = [membership.removes(adder.history)] if healthy else []
        newcomer.cover = removal_cover.cover_by_welcome(
            adder.history, not removal_cover.needs_heal(adder.cover, adder.history)
        )
        small_healthy = not removal_cover.needs_heal(adder.small_cover, adder.small)
        newcomer.small_cover = removal_cover.cover_by_welcome(adder.small, small_healthy)
        newcomer.last = at
        self._ack(newcomer, at)
        return at

    def remove(self, by: str, *whom: str) -> int:
        """A member removes others."""
        return self._do(by, "remove", whom)

    def update(self, by: str) -> int:
        """A member sends a new seed."""
        return self._do(by, "update", ())

    def deliverable(self, to: str) -> list[int]:
        """What may come to a member next."""
        replica = self.replicas[to]
        if not replica.active:
            return []
        return _ready(self.deeds, replica.had)

    def deliver(self, to: str, at: int) -> None:
        """A deed comes to a member, who acknowledges an operation at once."""
        replica = self.replicas[to]
        replica.had.add(at)
        replica.take(self.deeds[at], self.deeds)
        if replica.active and self.deeds[at].kind != "ack":
            self._ack(replica, at)

    def settle(self) -> None:
        """Everything comes to everybody who is still there."""
        waiting = True
        while waiting:
            waiting = False
            for name in list(self.replicas):
                while ready := self.deliverable(name):
                    self.deliver(name, ready[0])
                    waiting = True

    def active(self) -> list[str]:
        """Those who do not know of a removal of themselves."""
        return [name for name, replica in self.replicas.items() if replica.active]

    def _do(self, by: str, kind: str, whom: tuple[str, ...]) -> int:
        replica = self.replicas[by]
        assert replica.active, "a removed member acts no more"
        after = () if replica.last is None else (replica.last,)
        after = after or (0,)
        op = op_id(f"{kind} {len(self.deeds)} {by} {whom}")
        view = names(replica.history, by)
        assert view == names(replica.history), "all acknowledgements are out before an own operation"
        self.deeds.append(Deed(op, kind, by, whom, None, after, view))
        return self._did(replica)

    def _ack(self, replica: Replica, at: int) -> None:
        after = {at, 0 if replica.last is None else replica.last}
        op = op_id(f"ack {len(self.deeds)}")
        view = names(replica.history, replica.name)
        self.deeds.append(Deed(op, "ack", replica.name, (), at, tuple(sorted(after)), view))
        self._did(replica)

    def _did(self, replica: Replica) -> int:
        at = replica.last = len(self.deeds) - 1
        replica.had.add(at)
        replica.take(self.deeds[at], self.deeds)
        return at


def act(world: World, deeds: str) -> None:
    """What members do: ``A!`` sends a seed, ``A+C`` adds, ``A-C`` removes, ``A-CD`` both in one.

    ``B<`` lets B hear of the last of these, and ``*`` all hear of everything.
    """
    for deed in deeds.split():
        match [*deed]:
            case ["*"]:
                world.settle()
            case [who, "<"]:
                world.deliver(who, max(at for at, each in enumerate(world.deeds) if each.kind != "ack"))
            case [who, "!"]:
                world.update(who)
            case [who, "+", whom]:
                world.add(who, whom)
            case [who, "-", *whom]:
                world.remove(who, *whom)
            case _:
                raise ValueError(deed)


class Past:
    """Who is in a group, by the bare definition, over a causally closed part of what happened."""

    def __init__(self, deeds: Sequence[Deed], part: Iterable[int]) -> None:
        self.deeds = deeds
        self.part = sorted(part)
        self.before: dict[int, frozenset[int]] = {}
        for at in self.part:  # A deed stands after all that it came after.
            self.before[at] = frozenset(deeds[at].after).union(
                *(self.before[each] for each in deeds[at].after)
            )

    def members(self, ops: Iterable[int]) -> str:
        """Whom a set of operations leaves in the group."""
        ops = [at for at in ops if self.deeds[at].kind in OPS]
        added = {name: at for at in ops if self.deeds[at].kind != "remove" for name in self.deeds[at].whom}
        removals = [at for at in ops if self.deeds[at].kind == "remove"]
        return " ".join(
            sorted(name for name in added if not any(self.covers(at, name, added) for at in removals))
        )

    def covers(self, removal: int, name: str, added: dict[str, int]) -> bool:
        """Whether a removal takes a member out: as its target, or with its adder."""
        if name in self.deeds[removal].whom:
            return True
        by = added[name]
        if self.deeds[by].kind == "create" or by in self.before[removal]:
            return False
        return self.covers(removal, self.deeds[by].sender, added)

    def view(self, viewer: str | None) -> str:
        """The members in the view of one of them, or of all that happened."""
        if viewer is None:
            return self.members(self.part)
        own = [
            at
            for at in self.part
            if self.deeds[at].sender == viewer
            or (self.deeds[at].kind in ("create", "add") and viewer in self.deeds[at].whom)
        ]
        return self.members(self.before[own[-1]] | {own[-1]})

    def known(self) -> list[str]:
        """Everybody who was ever added."""
        return [
            name
            for at in self.part
            if self.deeds[at].kind in ("create", "add")
            for name in self.deeds[at].whom
        ]


class Choices:
    """Decisions of a run, from a list of numbers; after its end always the first."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = list(reversed(numbers))

    def __bool__(self) -> bool:
        return bool(self._numbers)

    @staticmethod
    def seeded(seed: int, count: int) -> Choices:
        """So many, as good as random."""
        random = Random(seed)
        return Choices([random.randrange(2**16) for _ in range(count)])

    def below(self, count: int) -> int:
        """A number from 0 on, below that."""
        return self._numbers.pop() % count if self._numbers else 0

    def order(self, deeds: Sequence[Deed]) -> list[int]:
        """One of the orders in which all that may come."""
        order: list[int] = []
        done: set[int] = set()
        while len(order) < len(deeds):
            ready = [
                at
                for at, deed in enumerate(deeds)
                if at not in done and all(each in done for each in deed.after)
            ]
            order.append(ready[self.below(len(ready))])
            done.add(order[-1])
        return order


CHOICES: st.SearchStrategy[Choices] = st.one_of(
    st.lists(st.integers(0, 2**16), max_size=60).map(Choices),
    st.builds(Choices.seeded, st.integers(0, 2**32), st.integers(40, 250)),
)


def _ready(deeds: Sequence[Deed], had: set[int]) -> list[int]:
    return [at for at, deed in enumerate(deeds) if at not in had and had.issuperset(deed.after)]


def every_order(deeds: Sequence[Deed], most: int) -> Iterator[list[int]]:
    """All orders in which that may come, up to so many."""
    stack: list[list[int]] = [[]]
    while stack and most:
        order = stack.pop()
        done = set(order)
        if len(order) == len(deeds):
            yield order
            most -= 1
        stack += [[*order, at] for at in _ready(deeds, done)]


def replay(deeds: Sequence[Deed], order: Iterable[int]) -> History:
    """What an onlooker knows after it took all that in this order."""
    history = EMPTY
    for at in order:
        history = apply(history, deeds[at], deeds)
    return history


def random_world(
    choices: Choices, watch: Callable[[World, str], None] | None = None, first: int = 4, most: int = 12
) -> World:
    """A group in which members act and learn as the choices say; after each step of one it is watched."""
    world = World([f"M{at}" for at in range(first)])
    while choices:
        who = world.active()
        if not who:
            break
        by = who[choices.below(len(who))]
        what = choices.below(20)
        others = [name for name in names(world.replicas[by].history, by).split() if name != by]
        if what in (1, 2) and len(world.replicas) < most:
            world.add(by, f"M{len(world.replicas)}")
        elif what in (3, 4) and others:
            targets = {others[choices.below(len(others))] for _ in range(1 + choices.below(5) // 4)}
            world.remove(by, *sorted(targets))
        elif what == 5:
            world.update(by)
        elif ready := world.deliverable(by):
            world.deliver(by, ready[choices.below(len(ready))])
        if watch is not None:
            watch(world, by)
    return world
