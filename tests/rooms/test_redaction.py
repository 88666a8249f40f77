"""What was said is taken back: by whom, and in whatever order both events come."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.event.event import Event, Verified
from linnet.rooms.commands import ReadRoom, SetMembership
from linnet.rooms.event_types import POWER, REDACTION, Membership, Redaction, body_of
from linnet.rooms.room_commands import FIRST_POWER


def messages(bench: Bench) -> list[Event | Unreadable]:
    """The messages of the room, as an application that begins now is handed them."""
    bench.effects.clear()
    bench.ask(ReadRoom(1000 + bench._requests, bench.id, 0.0, None, live=False, state=False))
    items = [item for effect in bench.effects for item in getattr(effect, "items", ())]
    return [item for item in items if isinstance(item, Event | Unreadable)]


def bodies(bench: Bench) -> list[bytes]:
    return [item.event.body if isinstance(item, Unreadable) else item.body for item in messages(bench)]


def redaction(bench: Bench, name: str, said: Verified, depends: bool) -> Verified:
    """One that knows what it takes back, or only its id."""
    body = body_of(Redaction(said.head, None))
    if depends:
        return bench.forge(name, REDACTION, None, body, deps=(said.head,))
    return bench.forge(name, REDACTION, None, body)


@pytest.mark.parametrize("depends", [True, False])
@pytest.mark.parametrize(
    ("name", "level", "taken_back"), [("bob", 0, True), ("cid", 0, False), ("cid", 50, True)]
)
def test_its_author_or_who_has_the_level_takes_it_back(
    name: str, level: int, taken_back: bool, depends: bool
) -> None:
    for order in permutations(("said", "redaction")):
        bench = Bench("bob", "cid")
        bench.govern(POWER, "", body_of(replace(FIRST_POWER, users={bench.who("cid").author: level})))
        said = bench.forge("bob")
        made = {"said": said, "redaction": redaction(bench, name, said, depends)}
        whole = bodies(bench)
        for each in order:
            bench.bring("cid", made[each])
        text = b"" if taken_back else said.events[0].body
        assert said.events[0].body
        for _ in range(2):
            assert bodies(bench) == [*whole, text]
            named = [(item.reason, item.by) for item in messages(bench) if isinstance(item, Unreadable)]
            assert named == ([(Reason.REDACTED, bench.who(name).author)] if taken_back else [])
            bench.restart()


def test_who_is_banned_takes_nothing_back() -> None:
    bench = Bench("bob", "cid")
    said = bench.forge("bob")
    bench.bring("bob", said)
    deps, control = bench.room.dag.heads, bench.room.control.heads
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    late = bench.forge(
        "bob", REDACTION, None, body_of(Redaction(said.head, None)), deps=deps, control=control
    )
    bench.bring("cid", late)
    assert bench.room.dag.knows(late.head)
    assert bodies(bench) == [said.events[0].body]
