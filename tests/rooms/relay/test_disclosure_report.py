"""All that a relay knows, for its owner and for the people of the room."""

from __future__ import annotations

from tests.rooms.chronicle import person
from tests.rooms.relay.scenes import NOW, World, card_of

from linnet.event.signing import encode_unit
from linnet.rooms.commands import RelayKnowledge, RelayReport, RelayRoomReport
from linnet.rooms.event_types import NAME, Membership
from linnet.rooms.receipts import sign_room_receipt


def test_a_report() -> None:
    world = World("r0", met=("ann", "ben"))
    hello = world.say("ben")
    name = world.chronicle.sign("ann", NAME, "", b"tea", world.control)
    world.send("r0", "ben", hello)
    world.now += 5
    world.send("r0", "ann", name)
    world.tell(
        "r0", "ben", sign_room_receipt(person("ben").device, card_of("ben"), world.room, 1, (hello.id,))
    )
    relay = world.station("r0").relay
    sizes = {each: len(encode_unit(world.unit(each))) for each in (hello, name)}
    ms = int(NOW * 1000)
    people = {
        "ann": RelayKnowledge(
            person("ann").author, Membership.JOIN, 6, 1, sizes[name], 1, ms + 5000, NOW + 5, 0
        ),
        "ben": RelayKnowledge(person("ben").author, Membership.JOIN, 1, 1, sizes[hello], 1, ms, NOW, 1),
        "r0": RelayKnowledge(person("r0").author, Membership.JOIN, 1, 0, 0, 1, None, None, 0),
    }
    assert relay.examine() == RelayReport(
        relay.epoch,
        (
            RelayRoomReport(
                world.room,
                8,
                2,
                sum(sizes.values()),
                0,
                NOW,
                0,
                0,
                1,
                tuple(sorted(people.values(), key=lambda each: each.person)),
            ),
        ),
    )


def written(world: World) -> dict[str, dict[bytes, bytes]]:
    """All that the relay has in its cells."""
    cells = world.station("r0").store.cells
    return {space: dict(cells.scan(space)) for space in vars(cells)["_spaces"]}


def test_when_somebody_was_seen_is_not_written_down() -> None:
    world = World("r0", met=("ben",))
    world.resync("r0", "ben")
    before = written(world)
    world.now += 1000
    world.resync("r0", "ben")
    (room,) = world.station("r0").relay.examine().rooms
    assert {each.last_seen for each in room.people if each.person == person("ben").author} == {world.now}
    assert written(world) == before
    world.restart("r0")
    (room,) = world.station("r0").relay.examine().rooms
    assert {each.last_seen for each in room.people} == {None}
