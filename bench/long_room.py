"""A long room: two people talk, sometimes at the same moment, and every fiftieth event is about power.

What is timed is a third member who takes it all in: judging, state, the graph, the log; signatures aside.
"""

from __future__ import annotations

import time
from random import Random

from bench.rooms_stage import Stage
from linnet.core.ids import AuthorId
from linnet.event.event import Verified
from linnet.rooms.event_positions import Arrival, Draft
from linnet.rooms.event_types import MEMBER, POWER, Member, Membership, Power, body_of, member_key
from linnet.rooms.room import Room
from linnet.rooms.room_commands import FIRST_POWER

_WINDOW = 1000
"""Events over which a cost is averaged."""


def costs(length: int) -> tuple[float, float]:
    """Seconds per event up to the first `_WINDOW` events, and over the last."""
    stage = Stage()
    for name in ("ann", "bob", "cid"):
        stage.add(name)
    stage.found("ann", "bob", "cid", relay=False)
    ann, bob, cid = map(stage.room_at, ("ann", "bob", "cid"))
    luck = Random(1)
    now = stage.network.now
    window = min(_WINDOW, length // 2)
    early = late = 0.0
    done = 0
    while done < length:
        now += 0.01
        made = _step(luck, done, ann, bob, now)
        for room in (ann, bob):
            for verified in made:
                room.intake.take(Arrival(verified, None, 1, 0), now)
                room.note_event(verified.events[0])
        began = time.perf_counter()
        for verified in made:
            cid.intake.take(Arrival(verified, None, 1, 0), now)
        took = time.perf_counter() - began
        for room in (ann, bob, cid):
            room.out.clear()  # What they ask for is sent to nobody.
        early += took if done < window else 0.0
        late += took if done >= length - window else 0.0
        done += len(made)
    return early / window, late / window


def _step(luck: Random, done: int, ann: Room, bob: Room, now: float) -> list[Verified]:
    """The next event, or two that know nothing of each other."""
    drafts = [_draft(luck, done)]
    if luck.random() < 0.1:
        drafts.append(Draft("message", None, luck.randbytes(64)))
    return [room.author.make(draft, now) for room, draft in zip((ann, bob), drafts, strict=False)]


def _draft(luck: Random, done: int) -> Draft:
    if done % 50:
        return Draft("message", None, luck.randbytes(64))
    someone = AuthorId(luck.randbytes(32))
    if done % 100:
        return Draft(MEMBER, member_key(someone), body_of(Member(Membership.INVITE)))
    levels = Power(
        {someone: luck.randrange(50)},
        events=FIRST_POWER.events,
        users_default=0,
        invite=0,
        kick=50,
        ban=50,
        redact=50,
        events_default=0,
        state_default=50,
    )
    return Draft(POWER, "", body_of(levels))
