from __future__ import annotations

from random import Random

from linnet.event.event import MESSAGE, Event
from linnet.rooms.content import MEMBER, Member, Membership, member_key
from linnet.rooms.event_builder import causes_of
from linnet.rooms.timeline import Timeline
from linnet.testing.rooms import Chronicle, person


def tangle(luck: Random) -> Chronicle:
    """Three people who know now more, now less of each other, with clocks that are hours off."""
    room = Chronicle("ann", time=0)
    heads = room.member("ann", "ann", Membership.JOIN, [room.create])
    said = [heads]
    for number in range(40):
        who = luck.choice(("ann", "bob", "cid"))
        deps = luck.sample(said, min(len(said), luck.randrange(1, 4)))
        skew = {"ann": 0, "bob": -7_200_000, "cid": 3_600_000}[who]
        said.append(room.sign(who, MESSAGE, None, b"", [heads], deps=deps, time=number * 10 + skew))
    return room


def order(events: list[Event]) -> list[Event]:
    timeline = Timeline()
    for number, event in enumerate(events):
        timeline.add(event, causes_of(event))
        if number % 7 == 0:
            timeline.key(event.id)
    return sorted(events, key=lambda event: timeline.key(event.id))


def test_the_order_is_causal_and_the_same_for_any_order_of_arrival() -> None:
    moved = 0
    for seed in range(30):
        luck = Random(seed)
        room = tangle(luck)
        events = list(room.events)
        first = order(events)
        place = {event.id: number for number, event in enumerate(first)}
        for event in events:
            assert all(place[cause] < place[event.id] for cause in causes_of(event))
        for _ in range(3):
            luck.shuffle(events)  # Also before their causes: what was gone may be back as history.
            assert order(events) == first
        moved += first != sorted(room.events, key=lambda event: (event.time, event.id))
    assert moved, "no clock was ever wrong: this shows nothing"


def test_the_earlier_of_two_that_know_nothing_of_each_other_is_first_and_then_the_smaller_id() -> None:
    room = Chronicle("ann", time=0)
    late = room.sign("bob", MESSAGE, None, b"", [room.create], time=9)
    early = room.sign("ann", MESSAGE, None, b"", [room.create], time=5)
    same = room.sign("cid", MESSAGE, None, b"", [room.create], time=5)
    assert order([room.create, late, early, same]) == [
        room.create,
        *sorted((early, same), key=lambda event: event.id),
        late,
    ]


def test_what_is_not_known_is_at_the_beginning() -> None:
    key = member_key(person("bob").author)
    room = Chronicle("ann")
    event = room.sign("bob", MEMBER, key, Member(Membership.JOIN), [room.create])
    assert Timeline().key(event.id) == (-1, event.id)
