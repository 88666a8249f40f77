"""One sealed stream at one node: opening, sealing, and who may publish."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.delivery.voices import TOPIC, Voice
from tests.streams.sealed.hall import OWNER, Hall
from tests.streams.stage import NOW, context_of

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.event.event import Event, Spot, Verified
from linnet.event.signing import message_tail
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.commands import Policy
from linnet.streams.ingest import Governance
from linnet.streams.sealed.message_format import LONGEST, seal_tails
from linnet.streams.sealed.sealed_stream import Sealed

RAIN = message_tail(b"rain", 0)


def sealed_events(hall: Hall, *bodies: bytes) -> Verified:
    """A unit of ann's chain, sealed with the present key of the hall."""
    ann = Voice("ann")
    ann.next = hall.number
    hall.number += len(bodies)
    present = hall.owning.present
    assert present is not None
    chain = Spot(TOPIC, *OWNER, ann.next, None)
    tails = [message_tail(body, 0) for body in bodies]
    return ann.sign(seal_tails(tails, chain, present, hall.owning.last or 0, hall.entropy))


class Ann:
    """The owner's node."""

    def __init__(self) -> None:
        self.context = context_of("ann")
        self.governance = Governance(TOPIC, OWNER.author, self.context.store.cells)
        self.sealed = Sealed(TOPIC, self.context, self.governance, Outbox())

    def said(self, body: bytes) -> Event:
        ann = Voice("ann")
        (event,) = ann.sign(list(self.sealed.seal([message_tail(body, 0)], 0, None))).events
        return event


def test_where_nobody_seals_all_stays_as_it_is() -> None:
    ann = Ann()
    (event,) = Voice("ann").say(b"rain").events
    assert ann.sealed.open(event) is event
    assert ann.sealed.seal([RAIN], 0, None) == [RAIN]
    assert ann.sealed.objection([RAIN]) is None
    assert not ann.sealed.is_due(NOW)
    for forbidden in (lambda: ann.sealed.turn(0, NOW), lambda: ann.sealed.owned):
        with pytest.raises(Refused, match="does not seal"):
            forbidden()


def test_the_owner_reads_what_it_said_while_it_has_the_key() -> None:
    ann = Ann()
    ann.sealed.start(NOW)
    assert ann.sealed.is_due(NOW)
    with pytest.raises(Refused):
        ann.sealed.seal([RAIN], 0, None)
    ann.sealed.turn(0, NOW)
    event = ann.said(b"rain")
    assert event.body != b"rain"
    opened = ann.sealed.open(event)
    assert isinstance(opened, Event)
    assert opened.body == b"rain"
    ann.sealed.turn(5, NOW)
    ann.sealed.vault.prune(NOW + 30 * 86_400.0)
    gone = ann.sealed.open(event)
    assert isinstance(gone, Unreadable)
    assert gone.reason is Reason.KEY_SPENT


def test_policies_are_for_everyone() -> None:
    ann = Ann()
    ann.sealed.start(NOW)
    ann.sealed.turn(0, NOW)
    tail = ann.governance.tail(Policy(), 0)
    assert ann.sealed.seal([tail], 1, None) == [tail]


def test_what_is_broken_is_told_as_such() -> None:
    ann = Ann()
    ann.sealed.start(NOW)
    ann.sealed.turn(0, NOW)
    event = ann.said(b"rain")
    for change, reason in (
        ({"body": event.body[:-1]}, Reason.UNDECRYPTABLE),
        ({"clear": b"x"}, Reason.MALFORMED),
        ({"clear": b"\x09" + (event.tail.clear or b"")[1:]}, Reason.UNSUPPORTED),
    ):
        item = ann.sealed.open(replace(event, tail=replace(event.tail, **change)))
        assert isinstance(item, Unreadable)
        assert (item.reason, item.event.body) == (reason, b"")


def test_another_device_of_the_owner_is_told_which_one_seals() -> None:
    ann = Ann()
    tail = ann.governance.tail(Policy(publishers=(), sealer=b"x" * 8), 1)  # type: ignore[arg-type]
    assert ann.governance.read(Voice("ann").sign([tail]))
    objection = ann.sealed.objection([RAIN])
    assert isinstance(objection, Declined)
    assert objection.reason is Reason.NOT_ALLOWED
    assert (b"x" * 8).hex() in objection.detail


def test_a_body_must_leave_room_for_its_seal() -> None:
    ann = Ann()
    ann.sealed.start(NOW)
    assert ann.sealed.objection([message_tail(b"x" * LONGEST, 0)]) is None
    objection = ann.sealed.objection([message_tail(b"x" * (LONGEST + 1), 0)])
    assert isinstance(objection, Declined)
    assert objection.reason is Reason.TOO_LARGE


def test_readers_come_once_by_a_line_and_go_with_their_device() -> None:
    ann, hall = Ann(), Hall()
    ann.sealed.start(NOW)
    request = hall.ask("ben")
    ann.sealed.allow(request, 0, False, NOW)
    with pytest.raises(Refused, match="granted before"):
        ann.sealed.allow(request, 1, False, NOW)
    assert not ann.sealed.is_due(NOW)
    person = SigningKey.generate(SeededEntropy(0, "identity/ben"))
    ann.context.cards.revoke(revoke(person, request.card.device, int(NOW)))
    ann.sealed.note_revocation()
    assert ann.sealed.is_due(NOW)
    assert ann.sealed.owned.readers == {}
    with pytest.raises(Refused, match="revoked"):
        ann.sealed.allow(hall.ask("ben"), 1, False, NOW)
    with pytest.raises(Refused, match="no reader"):
        ann.sealed.disallow(lambda device: True, 1, NOW)


def test_all_of_it_comes_back_after_a_restart() -> None:
    ann, hall = Ann(), Hall()
    ann.sealed.start(NOW)
    ann.sealed.allow(hall.ask("ben"), 0, False, NOW)
    again = Sealed(TOPIC, ann.context, ann.governance, Outbox())
    assert again.owned == ann.sealed.owned
    event = ann.said(b"rain")
    opened = again.open(event)
    assert isinstance(opened, Event)
    assert opened.body == b"rain"
