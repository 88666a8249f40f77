"""Members who sign what they like, through real node machines: it is refused by name, and all others go on.

The bodies are those of tests/groups/test_refusals.py.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from tests.groups import forgeries
from tests.rooms.circle import Circle

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.bodies import Acks, Add, Item, encode_body
from linnet.groups.labels import Device, MemberId
from linnet.groups.state import GroupState, encode_state
from linnet.rooms.event_positions import Draft
from linnet.rooms.event_types import GROUP, Newcomers
from linnet.sim.seeded_random import SeededEntropy
from linnet.trace.records import Kind, Record

HONEST = ("ann", "ben")


class Betrayal(Circle):
    """A circle of whom one, mal, has a machine like everybody's and signs more than it would."""

    def state_of(self, name: str) -> GroupState:
        return self.group(name).state(self.network.now)

    def betray(self, name: str) -> None:
        """From now on its own machine does not look at what it signs."""
        self.group(name)._check_own = lambda event, now: None  # type: ignore[method-assign]

    def sign(self, name: str, body: bytes, after: Iterable[EventId] = ()) -> EventId:
        """Let somebody say this in the group, whether it makes sense or not."""
        room, now = self.room_at(name), self.network.now
        made = room.author.make(Draft(GROUP, None, body), now, after=tuple(after))
        room.passing._publish(made, now)
        self.settle(name)
        return made.head

    def refusals(self, name: str, event: EventId) -> list[Record]:
        return [record for record in self.records(name, Kind.REJECTED) if record.event == event]

    def all_go_on(self, *names: str) -> None:
        """Everybody speaks and is read by all others, and all agree on who is there and on their keys."""
        for name in names:
            self.say(name, f"still here: {name}")
            self.run(3.0)
        self.run(10.0)
        for name in names:
            assert self.heard(name)[-len(names) :] == [f"still here: {one}" for one in names]
        states = [self.state_of(name) for name in names]
        for state in states:
            assert agreement.members(state) == agreement.members(states[0])
            assert not agreement.is_desynced(state)
            for member in (each.me for each in states if each.me is not None):
                assert state.ratchets[member] == states[0].ratchets[member]


def betrayal() -> Betrayal:
    """ann, ben and mal; zoe is in the group and away, so that acknowledgements are outstanding."""
    world = Betrayal("ann", "ben", "mal", "zoe")
    world.found("ann", "ben", "mal", "zoe", newcomers=Newcomers.FROM_NOW)
    world.run(20.0)
    world.offline("zoe")
    world.run(5.0)
    for name in ("mal", "ann"):
        world.update_keys(name)
        world.run(5.0)
    world.betray("mal")
    return world


def forged(world: Betrayal) -> dict[str, forgeries.Forgery]:
    group, luck = world.group("mal"), SeededEntropy(9, "mal")
    return forgeries.refused(world.state_of("mal"), group.bundle, luck, world.network.now)


def test_whatever_a_member_makes_up_is_refused_by_name_and_changes_nobody() -> None:
    world = betrayal()
    before = {name: encode_state(world.state_of(name)) for name in HONEST}
    for what, (body, reason) in forged(world).items():
        event = world.sign("mal", body)
        world.run(0.5)
        for name in HONEST:
            assert [record.reason for record in world.refusals(name, event)] == [reason], what
            assert encode_state(world.state_of(name)) == before[name], what
    world.online("zoe")
    world.run(20.0)
    world.all_go_on("ann", "ben", "mal", "zoe")


def test_acknowledgements_of_what_never_was_wait_and_hold_up_nobody() -> None:
    world = betrayal()
    before = {name: world.state_of(name) for name in HONEST}
    for number in range(40):
        op = EventId(number.to_bytes(32, "big"))
        world.sign("mal", encode_body(Acks(forgeries.head_of(world.state_of("mal")), (Item(False, op, ()),))))
    world.run(5.0)
    for name in HONEST:
        state = world.state_of(name)
        assert len(state.wanted) == 40
        assert encode_state(replace(state, wanted=())) == encode_state(before[name])
    world.online("zoe")
    world.run(20.0)
    world.all_go_on("ann", "ben", "mal", "zoe")


def test_a_flood_of_additions_ends_at_the_limit() -> None:
    world = betrayal()
    for name in (*HONEST, "mal"):
        group, state = world.group(name), world.state_of(name)
        group.keep(replace(state, config=replace(state.config, members=4)))
    members = {name: agreement.members(world.state_of(name)) for name in HONEST}
    for number in range(1, 21):
        device = Device(AuthorId(number.to_bytes(32, "big")), DeviceId(b"flooding"))
        head = forgeries.head_of(world.state_of("mal"), number)
        welcome, nothing = b"\x01" + bytes(180), EventId(bytes(32))
        body = Add(head, forgeries.KEY, device, forgeries.KEY, bytes(16), nothing, welcome, bytes(64))
        world.sign("mal", encode_body(body))
    world.run(5.0)
    for name in HONEST:
        assert agreement.members(world.state_of(name)) == members[name]
        reasons = [record.reason for record in world.records(name, Kind.REJECTED) if record.note == "group"]
        assert reasons == [Reason.GROUP_FULL] * 20
    world.say("ann", "unmoved")
    world.run(5.0)
    assert world.heard("ben")[-1] == "unmoved"


def test_devices_that_are_not_of_the_room_are_put_out_before_the_next_word() -> None:
    """A member can add whom it likes to the group; the room does not know it, so nobody tells it anything."""
    world = betrayal()
    device = Device(AuthorId(b"f" * 32), DeviceId(b"a friend"))
    welcome, nothing = b"\x01" + bytes(180), EventId(bytes(32))
    head = forgeries.head_of(world.state_of("mal"))
    body = Add(head, forgeries.KEY, device, forgeries.KEY, bytes(16), nothing, welcome, bytes(64))
    world.sign("mal", encode_body(body))
    world.run(10.0)
    for name in HONEST:
        assert device not in agreement.members(world.state_of(name)).values()
    world.say("ann", "among ourselves")
    world.run(5.0)
    assert world.heard("ben")[-1] == "among ourselves"


@pytest.mark.parametrize("ahead", [1, 1000], ids=["that counts", "that does not count"])
def test_a_welcome_that_does_not_open_keeps_nobody_out_for_long(ahead: int) -> None:
    """Whoever is named by it tells other prekeys, and is added by those."""
    world = Betrayal("ann", "ben", "mal", "eve")
    world.found("ann", "ben", "mal", newcomers=Newcomers.FROM_NOW)
    world.run(20.0)
    world.betray("mal")
    for name in (*HONEST, "mal"):
        world.group(name).missing = list  # type: ignore[method-assign] # They are slow.
    world.join("eve", by="ann")
    world.read("eve")
    world.run(5.0)
    eve = Device(world.person("eve"), world.identity["eve"].card.device)
    bundle = world.group("mal").bundle(eve)
    assert bundle is not None
    welcome, nothing = b"\x01" + bytes(180), EventId(bytes(32))
    head = forgeries.head_of(world.state_of("mal"), ahead)
    body = Add(head, forgeries.KEY, eve, bundle.identity, bytes(16), nothing, welcome, bytes(64))
    event = world.sign("mal", encode_body(body))
    for name in HONEST:
        del world.group(name).missing
    world.run(40.0)
    assert [record.reason for record in world.refusals("eve", event)] == [Reason.UNDECRYPTABLE]
    assert "eve" in world.holders("ann")
    assert world.group("eve").is_member
    world.all_go_on("ann", "ben", "eve")


@pytest.mark.parametrize(("ahead", "is_used"), [(1, True), (1000, False)], ids=["counts", "does not count"])
def test_an_addition_that_does_not_count_uses_up_nobodys_prekeys(ahead: int, is_used: bool) -> None:
    world = Betrayal("ann", "ben", "mal", "eve")
    world.found("ann", "ben", "mal", newcomers=Newcomers.FROM_NOW)
    world.run(20.0)
    world.betray("mal")
    for name in (*HONEST, "mal"):
        world.group(name).missing = list  # type: ignore[method-assign] # They are slow.
    world.join("eve", by="ann")
    world.run(5.0)
    eve = Device(world.person("eve"), world.identity["eve"].card.device)
    bundle = world.group("mal").bundle(eve)
    assert bundle is not None
    head = forgeries.head_of(world.state_of("mal"), ahead)
    welcome, nothing = b"\x01" + bytes(180), EventId(bytes(32))
    body = Add(head, forgeries.KEY, eve, bundle.identity, bytes(16), nothing, welcome, bytes(64))
    world.sign("mal", encode_body(body))
    world.run(5.0)
    for name in HONEST:
        assert world.group(name).keyring.is_used(bundle.identity) is is_used


def test_two_operations_of_one_number_leave_a_record_at_all_others() -> None:
    world = betrayal()
    group, now = world.group("mal"), world.network.now
    twice = [
        agreement.draft_update(
            world.state_of("mal"),
            agreement.Means(group.bundle, group.may_hold, SeededEntropy(seed, "mal"), now),
        ).body
        for seed in (1, 2)
    ]
    for body in twice:
        world.sign("mal", body)
        world.run(0.5)
    for name in HONEST:
        reasons = [record.reason for record in world.records(name, Kind.REJECTED) if record.note == "group"]
        assert reasons == [Reason.EQUIVOCATION]
        state = world.state_of(name)
        assert state.clock[world.state_of("mal").me or MemberId(b"")] == world.state_of("mal").cseq + 1


def test_a_thief_of_a_devices_key_cannot_stop_the_device() -> None:
    world = betrayal()
    room = world.room_at("ben")
    event = room.author.make(Draft(GROUP, None, b"\x01garbage"), world.network.now, after=())
    world.group("ben")._check_own(event.events[0], world.network.now)
    (record,) = room.out.take()
    assert isinstance(record, Record)
    assert record.reason is Reason.MALFORMED
