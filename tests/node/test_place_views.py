from __future__ import annotations

from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, to_text
from linnet.node.control_types import EndedView
from linnet.node.place_types import ChangedView, KnockedView, LostView, PieceView, ReceiptView, VariableView
from linnet.node.place_views import (
    guests_view,
    heard_view,
    objects_view,
    piece_view,
    receipts_view,
    talked_view,
    text_of,
)
from linnet.places.channel.packet import Modifier
from linnet.places.commands import GuestIs, GuestsAre, ObjectsAre, ReceiptIs, ReceiptsAre, Talked
from linnet.places.items import Body, Changed, Knocked, Lost

PLACE, ADA = TopicId(b"p" * 32), AuthorId(b"a" * 32)
PERSON = to_text(Sort.PERSON, ADA)


def test_what_is_heard_beside_messages() -> None:
    assert heard_view(Changed(PLACE, 3, "_a", b"x")) == ChangedView(3, "_a", b"x", "x")
    assert heard_view(Changed(PLACE, 3, "_a", None)) == ChangedView(3, "_a")
    assert heard_view(Changed(PLACE, 3, "_a", b"\xff")) == ChangedView(3, "_a", b"\xff", None)
    assert heard_view(Lost(PLACE, 1, 2, Reason.NOT_HELD)) == LostView(1, 2, "not_held")
    assert heard_view(Ended(Reason.SHUTDOWN)) == EndedView("shutdown")
    knocked = Knocked(PLACE, ADA, "_request_place_enter", (Modifier(":", "_x", b"1"),), b"hi")
    variables = (VariableView(":", "_x", b"1", "1"),)
    assert heard_view(knocked) == KnockedView(PERSON, "_request_place_enter", variables, "hi")


def test_pieces_objects_guests_and_receipts() -> None:
    assert piece_view(Body(PLACE, 2, None, 7, b"x", False)) == PieceView(7, b"x")
    assert piece_view(Ended(None)) == EndedView(None)
    objects = objects_view(ObjectsAre(PLACE, (("_a", b"\xff"), ("_b", b"x")), 9))
    assert [(each.name, each.text) for each in objects.objects] == [("_a", None), ("_b", "x")]
    guests = guests_view(GuestsAre(PLACE, (GuestIs(ADA, 3, None),), (ADA,)))
    assert (guests.guests[0].person, guests.guests[0].since, guests.waiting) == (PERSON, 3, (PERSON,))
    assert talked_view(Talked(PLACE, 4, PeerId(b"d" * 32))).voice.startswith("ld1")
    assert text_of(b"\xc3\xa9") == "é"
    receipts = receipts_view(ReceiptsAre(PLACE, 4, (ReceiptIs(ADA, "delivered", 9),)))
    assert (receipts.message, receipts.receipts) == (4, (ReceiptView(PERSON, "delivered", 9),))
