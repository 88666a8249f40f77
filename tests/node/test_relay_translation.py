from __future__ import annotations

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.event.units import units
from tests.node.standin_relay import EPOCH, NOWHERE, ROOM, id_of, room_unit

from linnet.core.ids import Contact, EventId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given
from linnet.event.event import Verified
from linnet.event.signing import encode_unit
from linnet.identity.text import event_text
from linnet.node.relay_protocol import (
    AuthDagRequest,
    EventResult,
    GetRequest,
    RelayHttpError,
    ResyncRequest,
    SendRequest,
    Status,
)
from linnet.node.relay_translation import (
    UNIT_BYTES,
    control_message,
    control_reply,
    cursor_text,
    get_reply,
    parcel_of,
    read_cursor,
    resync_message,
    resync_reply,
    send_reply,
    want_message,
)
from linnet.peer.config import Identity
from linnet.rooms.invitations import issue_ticket
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    RelayCursor,
    RelayOutcome,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.testing.identities import known_identity
from linnet.testing.strategies import values

ANN = known_identity("ann")
FIRST, SECOND = room_unit(ANN, 0, b"one"), room_unit(ANN, 1, b"two")
HERE = RelayCursor(EPOCH, 7)


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def taken(*outcomes: RelayOutcome, reason: Reason | None = None) -> RelayTaken:
    return RelayTaken(ROOM, 1, outcomes, reason)


@given(units(max_events=1))
def test_a_unit_is_the_same_after_its_way(signed: tuple[Identity, Verified]) -> None:
    identity, verified = signed
    request = SendRequest((text(encode_unit(verified.unit)),), (msgspec.msgpack.encode(identity.card),))
    parcel = parcel_of(request)
    assert parcel.entries == ((verified.head, verified.unit),)
    assert parcel.cards == (identity.card,)


@given(units(max_events=3).filter(lambda signed: len(signed[1].events) > 1))
def test_a_burst_is_no_event_of_a_room(signed: tuple[Identity, Verified]) -> None:
    parcel = parcel_of(SendRequest((text(encode_unit(signed[1].unit)),)))
    assert parcel.entries == (EventResult(None, Status.REJECTED, error="malformed"),)


@given(st.lists(st.text(max_size=40) | st.binary(max_size=200).map(text), max_size=5))
def test_no_text_is_an_error_of_the_batch(texts: list[str]) -> None:
    parcel = parcel_of(SendRequest((*texts, text(encode_unit(FIRST)))))
    assert parcel.units == (FIRST,)
    assert all(isinstance(entry, EventResult) for entry in parcel.entries[:-1])


def test_a_unit_of_which_the_tail_is_nothing_is_malformed() -> None:
    broken = msgspec.structs.replace(FIRST, tails=(b"\x99" + b"\xc1" * 20,))
    other = msgspec.structs.replace(FIRST, tails=(b"x" * 20,))
    too_large = "A" * (UNIT_BYTES * 2)
    parcel = parcel_of(SendRequest((text(encode_unit(broken)), text(encode_unit(other)), too_large)))
    assert [entry.error for entry in parcel.entries if isinstance(entry, EventResult)] == [
        "malformed",
        "malformed",
        "too_large",
    ]


def test_a_wrong_card_is_an_error_that_names_it() -> None:
    with pytest.raises(RelayHttpError, match=r"cards\[1\]"):
        parcel_of(SendRequest((), (msgspec.msgpack.encode(ANN.card), b"x")))


def test_each_event_has_its_result_in_order() -> None:
    sent = [room_unit(ANN, number, bytes([number])) for number in range(6)]
    parcel = parcel_of(SendRequest((*(text(encode_unit(unit)) for unit in sent), "?")))
    ids = [id_of(unit) for unit in sent]
    outcomes = (
        RelayOutcome(ids[4], None, Reason.MISSING_DEPENDENCY, (NOWHERE,)),
        RelayOutcome(ids[3], None, Reason.BANNED, ()),
        RelayOutcome(ids[2], HERE, Reason.DUPLICATE, ()),
        RelayOutcome(ids[1], HERE, Reason.SOFT_FAILED, ()),
        RelayOutcome(ids[0], HERE, None, ()),
    )
    names = [event_text(event) for event in ids]
    here = cursor_text(HERE)
    assert send_reply(parcel, taken(*outcomes)).results == (
        EventResult(names[0], Status.ACCEPTED, here),
        EventResult(names[1], Status.ACCEPTED, here, "soft_failed"),
        EventResult(names[2], Status.DUPLICATE, here),
        EventResult(names[3], Status.REJECTED, error="banned"),
        EventResult(names[4], Status.MISSING, error="missing_dependency", missing=(event_text(NOWHERE),)),
        EventResult(names[5], Status.REJECTED, error="unknown"),
        EventResult(None, Status.REJECTED, error="malformed"),
    )


def test_one_event_twice_has_two_results() -> None:
    forged = msgspec.structs.replace(FIRST, sig=bytes(64))
    parcel = parcel_of(SendRequest((text(encode_unit(forged)), text(encode_unit(FIRST)))))
    event = id_of(FIRST)
    reply = send_reply(
        parcel,
        taken(
            RelayOutcome(event, None, Reason.BAD_SIGNATURE, ()),
            RelayOutcome(event, HERE, None, ()),
        ),
    )
    assert [result.status for result in reply.results] == [Status.REJECTED, Status.ACCEPTED]


def test_a_refused_parcel_is_an_error() -> None:
    with pytest.raises(RelayHttpError) as caught:
        send_reply(parcel_of(SendRequest((text(encode_unit(FIRST)),))), taken(reason=Reason.NOT_A_RELAY))
    assert caught.value.status == 403


@given(values(RelayCursor))
def test_a_cursor_is_read_as_it_was_written(cursor: RelayCursor) -> None:
    word = cursor_text(cursor)
    assert word is not None
    assert read_cursor(word) == cursor
    assert resync_message(ROOM, 3, ResyncRequest(word, 5)) == Resync(ROOM, 3, cursor, 5, False)


@given(
    st.text(max_size=40) | st.sampled_from([f"{'0' * 16}.{2**63}", f"{'0' * 16}.01", f"{'A' * 16}.1", "."])
)
def test_what_is_no_cursor_is_refused(word: str) -> None:
    with pytest.raises(RelayHttpError) as caught:
        read_cursor(word)
    assert caught.value.status == 400


@given(values(ResyncPage))
def test_a_page_loses_nothing(page: ResyncPage) -> None:
    page = msgspec.structs.replace(page, reason=None)
    reply = resync_reply(page)
    assert tuple(map(encode_unit, page.units)) == reply.events
    assert tuple(map(msgspec.msgpack.encode, page.cards)) == reply.cards
    assert tuple(map(msgspec.msgpack.encode, page.receipts)) == reply.receipts
    assert (reply.next_cursor, reply.oldest_cursor) == (cursor_text(page.next), cursor_text(page.oldest))
    assert (reply.limited, len(reply.tombstones)) == (page.more, len(page.tombstones))
    assert reply.control_heads == tuple(map(event_text, page.control))


def test_an_expired_cursor_says_where_to_go_on() -> None:
    page = ResyncPage(ROOM, 1, (), (), (), (), None, False, HERE, (), Reason.CURSOR_EXPIRED)
    with pytest.raises(RelayHttpError) as caught:
        resync_reply(page)
    assert (caught.value.status, caught.value.reply.oldest_cursor) == (410, cursor_text(HERE))
    with pytest.raises(RelayHttpError) as caught:
        resync_reply(msgspec.structs.replace(page, reason=Reason.BANNED))
    assert (caught.value.status, caught.value.reply.oldest_cursor) == (403, None)


@pytest.mark.parametrize(
    ("reason", "told", "limited"),
    [(None, None, False), (Reason.RETENTION, "retention", False), (Reason.TOO_LARGE, None, True)],
)
def test_what_is_held_and_what_not(reason: Reason | None, told: str | None, limited: bool) -> None:
    reply = get_reply(Given(ROOM, 1, (FIRST,), (ANN.card,), (NOWHERE,), reason))
    assert reply.events == (encode_unit(FIRST),)
    assert (reply.unknown, reply.reason, reply.limited) == ((event_text(NOWHERE),), told, limited)


def test_who_may_not_read_gets_an_error() -> None:
    with pytest.raises(RelayHttpError) as caught:
        get_reply(Given(ROOM, 1, (), (), (), Reason.UNKNOWN_ROOM))
    assert caught.value.status == 404


def test_questions_as_messages() -> None:
    ids = (EventId(b"a" * 32), EventId(b"b" * 32))
    texts = tuple(map(event_text, ids))
    assert want_message(ROOM, 4, GetRequest(texts)).ids == ids
    ticket = issue_ticket(ANN.device, ANN.card, ROOM, None, 5, b"8 bytes.")
    asked = AuthDagRequest(texts, 9, msgspec.msgpack.encode(ticket))
    assert control_message(ROOM, 4, asked) == AskControl(ROOM, 4, ids, ticket)
    with pytest.raises(RelayHttpError, match="ticket"):
        control_message(ROOM, 4, AuthDagRequest((), 9, b"x"))


def test_a_page_of_control_events_is_cut_at_the_limit() -> None:
    relay = Contact(ANN.peer, ("tls://h:1",))
    page = ControlPage(ROOM, 1, (FIRST, SECOND), (ANN.card,), False, (NOWHERE,), (relay,), None)
    whole, cut = control_reply(page, 2), control_reply(page, 1)
    assert (len(whole.events), whole.more) == (2, False)
    assert (cut.events, cut.more) == ((encode_unit(FIRST),), True)
    assert cut.relays[0].endswith("@tls://h:1")
    with pytest.raises(RelayHttpError) as caught:
        control_reply(msgspec.structs.replace(page, reason=Reason.NOT_INVITED), 1)
    assert caught.value.status == 403
