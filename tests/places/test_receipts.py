"""For every message it can be told which guests have it."""

from __future__ import annotations

import msgspec
import pytest
from tests.places.sealed.scene import Node
from tests.places.sharing import COHOST, run, says, shared_place
from tests.raised import reason_of

from linnet.core.effects import Send
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.places.commands import GuestsAre, ListGuests, ListReceipts, ReceiptsAre
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy, sign_deed
from linnet.places.messages import Receipts
from linnet.places.multicast.fragmentation import Change
from linnet.places.place_setup import Parts
from linnet.places.receipts import GuestReceipts, check_receipt, sign_receipt
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.testing.identities import known_identity

ANNA = known_identity("anna")
PLACE = TopicId(b"t" * 32)


def states(world: PlacesWorld, name: str, message: int) -> dict[str, str]:
    told = world.obtain(name, ListReceipts(world.place, message), ReceiptsAre)
    names = {identity.author: who for who, identity in world.identities.items()}
    return {names[each.nym]: each.state for each in told.receipts}


def test_a_receipt_is_signed_for_one_place() -> None:
    receipt = sign_receipt(ANNA.device, ANNA.card, PLACE, 2, 30, 1000)
    check_receipt(receipt, PLACE)
    for forged in ({"upto": 31}, {"term": 3}, {"at_ms": 1001}):
        assert (
            reason_of(RemoteError, check_receipt, msgspec.structs.replace(receipt, **forged), PLACE)
            is Reason.BAD_SIGNATURE
        )
    with pytest.raises(RemoteError):
        check_receipt(receipt, TopicId(b"u" * 32))


def test_the_host_knows_who_has_a_message_through_others_and_after_a_restart() -> None:
    world = PlacesWorld(5, seed=1, config=PlacesConfig(fanout=2))
    world.found()
    for name in world.guests[:4]:
        world.enter(name)
    run(world, 15)
    world.crash("guest3")
    message = says(world, HOST, "hello")
    run(world, 30)
    world.enter("guest4")
    expected = {"guest0": "delivered", "guest1": "delivered", "guest2": "delivered", "guest3": "pending"}
    assert states(world, HOST, message) == {**expected, "guest4": "closed"}
    world.crash(HOST)
    world.restart(HOST)
    run(world, 5)
    assert states(world, HOST, message)["guest1"] == "delivered"
    world.restart("guest3")
    run(world, 60)
    assert states(world, HOST, message)["guest3"] == "delivered"
    guests = world.obtain(HOST, ListGuests(world.place), GuestsAre).guests
    assert all(each.upto is not None and each.upto > message for each in guests)
    assert world.obtain("guest0", ListReceipts(world.place, message), Declined).reason is Reason.NOT_ALLOWED


def test_who_speaks_next_gets_the_receipts() -> None:
    world = shared_place(4, seed=2)
    before = says(world, HOST, "by the host")
    run(world, 20)
    message = says(world, COHOST, "by the co-host")
    run(world, 30)
    for each in (before, message):
        told = states(world, COHOST, each)
        assert {told[name] for name in ("guest1", "guest2", "guest3")} == {"delivered"}


def test_where_nobody_is_nearest_to_the_voice_a_receipt_goes_round_once() -> None:
    """As when the host is gone, and each of three guests has the next one above it."""
    deed = sign_deed(known_identity("place").device, 1, Policy.PUBLIC, known_identity("host").author, (), ())
    relays: dict[PeerId, GuestReceipts] = {}
    outboxes: dict[PeerId, Outbox] = {}
    names = ("ben", "cleo", "dan")
    for name, above in zip(names, (*names[1:], names[0]), strict=True):
        out = outboxes[known_identity(name).peer] = Outbox()
        parts = Parts(deed, Node(name).context, PlacesConfig(), out)
        parts.membership.store(Change(ANNA.author, True, 0), 1, 0)
        parts.tree.connect_up(known_identity(above).peer)
        relays[known_identity(name).peer] = GuestReceipts(parts)
    first = known_identity(names[0]).peer
    for given, times in ((1000, 3), (2000, 3), (1000, 0)):  # the last one has come round, after a newer one
        receipt = sign_receipt(ANNA.device, ANNA.card, deed.place, 1, given, given)
        relays[first].handle_receipts(ANNA.peer, Receipts(deed.place, (receipt,), (ANNA.card,)), 0.0)
        sent = 0
        for _ in range(10):
            for peer, relay in relays.items():
                relay.send_receipts(0.0)
                for effect in outboxes[peer].take():
                    if isinstance(effect, Send):
                        sent += 1
                        assert isinstance(effect.message, Receipts)
                        relays[effect.peer].handle_receipts(peer, effect.message, 0.0)
        assert sent == times
