"""Random histories of a room among real node machines, and what must be true at their end."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from random import Random

from tests.rooms.circle import Circle

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, PeerId
from linnet.delivery.receipts import Fate
from linnet.event.event import Event
from linnet.peer.interface import AnyCommand, Handed
from linnet.rooms.commands import (
    JoinRoom,
    MakeTicket,
    Redact,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetRule,
    SetState,
    TicketMade,
)
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import NAME, JoinRule, Membership
from linnet.rooms.room import Room
from linnet.rooms.room_status import state_of

FOUNDER = "ann"
MODERATORS = {"bob": 75, "cid": 60}
RULES = (JoinRule.INVITE, JoinRule.PUBLIC, JoinRule.KNOCK)


class History(Circle):
    """A founder, two moderators and some others, who do this and that."""

    def __init__(
        self,
        seed: int,
        loss: float = 0.0,
        relays: int = 0,
        steps: int = 60,
        config: RoomsConfig | None = None,
    ) -> None:
        self.handed: dict[tuple[str, int], list[EventId]] = {}
        names = (FOUNDER, *MODERATORS, "dan", "eve")
        self.members = names
        super().__init__(
            *names, *(f"r{number}" for number in range(relays)), seed=seed, loss=loss, config=config
        )
        self.luck = Random(f"history/{seed}")
        self.steps = steps
        self.down: dict[str, None] = {}
        self.split = False

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        name = self.name(peer)
        life = self.handed.setdefault((name, self._lives[name]), [])
        life += [item.id for item in effect.items if isinstance(item, Event)]
        super()._deliver(peer, effect, now)

    def room_of(self, name: str) -> Room | None:
        return self.rooms(name)._registry.get(self.room)

    # What happens.

    def play(self) -> None:
        relays = [name for name in self.identity if name.startswith("r")]
        self.found(*self.members, *relays)
        for name, level in MODERATORS.items():
            self.ask(FOUNDER, SetLevel(self.room, level, person=self.person(name)))
        self.run(5.0)
        acts: list[tuple[int, Callable[[], None]]] = [
            (10, self.speak),
            (3, self.rename),
            (2, self.redact),
            (4, self.change_membership),
            (3, self.change_level),
            (1, self.change_rule),
            (2, self.leave),
            (4, self.come_back),
            (2, self.crash),
            (3, self.recover),
            (2, self.part),
            (2, self.meet),
        ]
        for _ in range(self.steps):
            self.luck.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()
            self.run(self.luck.choice((0.0, 0.02, 0.3, 2.0)))
        self.network.heal()
        while self.down:
            self.recover()
        self.run(150.0)

    def tell(self, name: str, command: AnyCommand) -> None:
        if name not in self.down:
            self.network.ask(self.peer(name), command)

    def someone(self) -> str:
        return self.luck.choice(self.members)

    def speak(self) -> None:
        self.tell(self.someone(), SendToRoom(self.room, (self.luck.randbytes(4).hex().encode(),)))

    def rename(self) -> None:
        who = self.luck.choice((FOUNDER, *MODERATORS))
        self.tell(who, SetState(self.room, NAME, "", self.luck.randbytes(4).hex().encode()))

    def redact(self) -> None:
        who = self.someone()
        said = [item.id for item in self.items[who] if isinstance(item, Event)]
        if said:
            self.tell(who, Redact(self.room, self.luck.choice(said)))

    def change_membership(self) -> None:
        who = self.luck.choice((FOUNDER, *MODERATORS))
        whom = self.luck.choice([name for name in self.members if name != who])
        how = self.luck.choice((Membership.BAN, Membership.LEAVE, Membership.LEAVE, Membership.INVITE))
        self.tell(who, SetMembership(self.room, self.person(whom), how))

    def change_level(self) -> None:
        who = self.luck.choice((FOUNDER, *MODERATORS))
        level = self.luck.choice((0, 10, 50, 60, 75))
        self.tell(who, SetLevel(self.room, level, person=self.person(self.someone())))

    def change_rule(self) -> None:
        self.tell(FOUNDER, SetRule(self.room, self.luck.choice(RULES)))

    def leave(self) -> None:
        who = self.luck.choice(self.members[1:])
        self.tell(who, SetMembership(self.room, self.person(who), Membership.LEAVE))

    def come_back(self) -> None:
        who, by = self.luck.choice(self.members[1:]), self.luck.choice((FOUNDER, *MODERATORS))
        if who == by or by in self.down or who in self.down:
            return
        expires = int((self.network.now + 3600.0) * 1000)
        made = self.ask(by, MakeTicket(self.room, expires))
        if isinstance(made, TicketMade):
            self.tell(who, JoinRoom(self.room, made.ticket, made.contacts, 5.0))

    def crash(self) -> None:
        name = self.luck.choice([*self.identity])
        if name not in self.down and len(self.down) < 3:
            self.down[name] = None
            self.offline(name)

    def recover(self) -> None:
        if self.down:
            name = self.luck.choice([*self.down])
            del self.down[name]
            self.online(name)

    def part(self) -> None:
        if not self.split:
            self.split = True
            names = [*self.identity]
            self.luck.shuffle(names)
            half = len(names) // 2
            self.network.partition(
                [[self.peer(n) for n in names[:half]], [self.peer(n) for n in names[half:]]]
            )

    def meet(self) -> None:
        if self.split:
            self.split = False
            self.network.heal()

    # What must be true.

    def inside(self) -> list[str]:
        """Who is in the room, in the eyes of its founder, and to be found by those who are.

        Who was put out without a right to it, and whose address everyone has forgotten, has to ask again.
        """
        room = self.room_of(FOUNDER)
        assert room is not None
        joined = [name for name in self.members if room.view.membership(self.person(name)) is Membership.JOIN]
        found = {FOUNDER: None}
        waiting = [FOUNDER]
        while waiting:
            linked = self.network.linked(self.peer(waiting.pop()))
            new = [name for name in joined if self.peer(name) in linked and name not in found]
            found |= dict.fromkeys(new)
            waiting += new
        return [name for name in joined if name in found or self.is_there(name)]

    def is_there(self, name: str) -> bool:
        room = self.room_of(name)
        return room is not None and room.is_active

    def check(self) -> None:
        inside = self.inside()
        assert FOUNDER in inside
        rooms = {name: room for name in inside if (room := self.room_of(name)) is not None}
        assert list(rooms) == inside
        for name, room in rooms.items():
            assert room.is_active, f"{name} does not know that it is in the room"
            self.check_settled(name, room, [*rooms.values()])
            self.check_handed(name, room)
        known = {name: frozenset(room.dag.ids_in_order()) for name, room in rooms.items()}
        for name in inside:
            missing = known[FOUNDER] ^ known[name]
            shed = {*self.shed(FOUNDER), *self.shed(name)}
            assert missing <= shed, f"{FOUNDER} and {name} differ by {len(missing)}"
        assert len({state_of(room).digest for room in rooms.values()}) == 1, "states differ"
        for name, room in rooms.items():
            self.check_shown(name, room, known)
            self.check_ledger(name, room, known)

    def shed(self, name: str) -> dict[EventId, None]:
        room = self.room_of(name)
        assert room is not None
        return room.intake.failure.shed

    def check_settled(self, name: str, room: Room, inside: list[Room]) -> None:
        """Nothing is on its way, and what waits waits for what nobody in the room has."""
        assert not room.sync._sessions, name
        for waiting in room.intake.order._waiting.values():
            had = [ref for ref in waiting.missing if any(each.dag.satisfies(ref) for each in inside)]
            nested = [ref for ref in waiting.missing if room.intake.order.waits(ref)]
            assert len(had) < len(waiting.missing) or nested, f"{name} waits for {len(had)} in vain"

    def check_handed(self, name: str, room: Room) -> None:
        """After its causes, once in each life, nothing that is not allowed, and nothing is left out."""
        ever: dict[EventId, None] = {}
        for (who, _), handed in self.handed.items():
            if who != name:
                continue
            assert len(handed) == len(set(handed)), f"{name} was handed something twice"
            for at, later in enumerate(handed):
                assert not any(room.dag.precedes(later, before) for before in handed[:at]), name
            ever |= dict.fromkeys(handed)
        for each in ever:
            event = room.memory.event(each)
            assert event is not None
            assert room.control.judge(event) is None
            assert room.dag.shows(each)
        for each in room.dag.ids_in_order():
            event = room.memory.event(each)
            assert event is not None
            is_said = event.tail.key is None and event.kind != "redaction"
            if is_said and each not in room.memory.hidden:
                assert each in ever, f"{name} was never handed {event.body!r}"

    def check_shown(self, name: str, room: Room, known: dict[str, frozenset[EventId]]) -> None:
        """What one shows and another does not has failed softly at the other."""
        founders = self.room_of(FOUNDER)
        assert founders is not None
        for each in known[name] & known[FOUNDER]:
            if room.dag.shows(each) != founders.dag.shows(each):
                hiding = founders if room.dag.shows(each) else room
                assert each in hiding.memory.hidden

    def check_ledger(self, name: str, room: Room, known: dict[str, frozenset[EventId]]) -> None:
        """Whatever is said to have arrived has."""
        names = {self.person(each): each for each in self.members}
        for fates in room.ledger.newest(1000):
            for fate in fates.members:
                who = names[fate.person]
                if fate.fate is Fate.DELIVERED and who in known:
                    assert fates.event in known[who], f"{name} believes that {who} has an event"

    def trace(self) -> str:
        """A digest of everything that was recorded, in order."""
        digest = hashlib.sha256()
        for row in self.notes.rows:
            digest.update(repr(row).encode())
        return digest.hexdigest()


def main() -> None:
    """Print the digest of one history, for whoever compares processes."""
    history = History(int(sys.argv[1]), loss=0.02, relays=1, steps=25)
    history.play()
    history.check()
    print(history.trace())


if __name__ == "__main__":
    main()
