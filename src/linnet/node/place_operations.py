"""Every operation of the control API that has to do with places."""

from __future__ import annotations

from linnet.node.control_types import DoneReply
from linnet.node.operation import Form, Operation
from linnet.node.place_types import (
    AdmitRequest,
    AnnouncedReply,
    AnnounceRequest,
    BodyQuery,
    ChangeRequest,
    EjectRequest,
    EnterRequest,
    GuestsReply,
    HostRequest,
    LeaveRequest,
    ListenQuery,
    MoreRequest,
    ObjectsQuery,
    ObjectsReply,
    PastQuery,
    PlaceItemView,
    PlaceReceiptsReply,
    PlaceReply,
    PlacesReply,
    RejectRequest,
    TalkedReply,
    TalkRequest,
)

_PLACE = (("place", str, "A place's id, `lt1…`."),)
_MESSAGE = (*_PLACE, ("message", int, "The number of a message."))
_ASKED = (403, 404, 409)
_TOLD = (403, 404, 409, 413, 429)


def _post(
    name: str, path: str, summary: str, reply: object, body: type, errors: tuple[int, ...] = _TOLD
) -> Operation:
    path = f"/v1/places/{{place}}/{path}"
    return Operation(name, "POST", path, summary, reply, body=body, parameters=_PLACE, errors=errors)


PLACE_OPERATIONS = (
    Operation("places", "GET", "/v1/places", "Every place of this node.", PlacesReply, errors=(409,)),
    Operation(
        "host_place",
        "POST",
        "/v1/places",
        "Found a place and open its door; answered when it is durable here.",
        PlaceReply,
        body=HostRequest,
        errors=_TOLD,
    ),
    Operation(
        "enter_place",
        "POST",
        "/v1/places/enter",
        "Enter a place, or come back to it; answered when we are in, or turned away.",
        PlaceReply,
        body=EnterRequest,
        errors=_TOLD,
    ),
    Operation(
        "place",
        "GET",
        "/v1/places/{place}",
        "A place of this node as it stands, and what others enter it by.",
        PlaceReply,
        parameters=_PLACE,
        errors=_ASKED,
    ),
    _post("change_place", "deed", "Change who may come in and who may speak.", PlaceReply, ChangeRequest),
    _post(
        "announce",
        "announce",
        "Say something to all guests; answered when it is durable here.",
        AnnouncedReply,
        AnnounceRequest,
    ),
    _post(
        "announce_more",
        "announce/more",
        "More of the body of an open message, also of one that an earlier run left open.",
        AnnouncedReply,
        MoreRequest,
    ),
    _post(
        "talk",
        "talk",
        "Say something to the host alone; answered when its device wrote it down.",
        TalkedReply,
        TalkRequest,
    ),
    _post("admit", "admit", "Let somebody in who waits at the door.", AnnouncedReply, AdmitRequest),
    _post("reject", "reject", "Turn somebody away who waits at the door.", DoneReply, RejectRequest),
    _post("eject", "eject", "Put a guest out.", AnnouncedReply, EjectRequest),
    _post("leave_place", "leave", "Be a guest no longer, or only not now.", DoneReply, LeaveRequest),
    Operation(
        "objects",
        "GET",
        "/v1/places/{place}/objects",
        "What a place is decorated with; also when nobody can be reached.",
        ObjectsReply,
        query=ObjectsQuery,
        parameters=_PLACE,
        errors=_ASKED,
    ),
    Operation(
        "guests",
        "GET",
        "/v1/places/{place}/guests",
        "Who is in, and who waits at the door.",
        GuestsReply,
        parameters=_PLACE,
        errors=_ASKED,
    ),
    Operation(
        "listen",
        "GET",
        "/v1/places/{place}/listen",
        "Be handed what is said in a place, one JSON value per line, until either side closes.",
        PlaceItemView,
        query=ListenQuery,
        parameters=_PLACE,
        form=Form.LINES,
        errors=(403, 404, 409, 429),
    ),
    Operation(
        "place_history",
        "GET",
        "/v1/places/{place}/history",
        "Be handed messages of the past in their order; what is not here is asked for.",
        PlaceItemView,
        query=PastQuery,
        parameters=_PLACE,
        form=Form.LINES,
        errors=(403, 404, 409, 429),
    ),
    Operation(
        "place_receipts",
        "GET",
        "/v1/places/{place}/messages/{message}/receipts",
        "Which guests have a message; for the host and co-hosts.",
        PlaceReceiptsReply,
        parameters=_MESSAGE,
        errors=_ASKED,
    ),
    Operation(
        "message_body",
        "GET",
        "/v1/places/{place}/messages/{message}/body",
        "The body of one message piece by piece, from a byte on, however long it is.",
        PlaceItemView,
        query=BodyQuery,
        parameters=_MESSAGE,
        form=Form.LINES,
        errors=(403, 404, 409, 429),
    ),
)
