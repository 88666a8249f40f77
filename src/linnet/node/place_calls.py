"""What the control API can be asked about places, by a program. Places are named by their ids here."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from linnet.node.caller import ANSWER_SECONDS, Caller
from linnet.node.control_types import DoneReply
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

_ITEM: msgspec.json.Decoder[PlaceItemView] = msgspec.json.Decoder(PlaceItemView)


class PlaceCalls(Caller):
    """The calls about places."""

    def places(self) -> PlacesReply:
        """Every place of the node."""
        return self._get("/v1/places", PlacesReply)

    def host_place(self, request: HostRequest) -> PlaceReply:
        """Found a place."""
        return self._post("/v1/places", request, PlaceReply)

    def enter_place(self, request: EnterRequest) -> PlaceReply:
        """Enter a place, or come back to it."""
        return self._post("/v1/places/enter", request, PlaceReply, ANSWER_SECONDS + request.patience)

    def place(self, place: str) -> PlaceReply:
        """A place as it stands."""
        return self._get(f"/v1/places/{place}", PlaceReply)

    def change_place(self, place: str, request: ChangeRequest) -> PlaceReply:
        """Change who may come in and who may speak."""
        return self._post(_path(place, "deed"), request, PlaceReply)

    def announce(self, place: str, request: AnnounceRequest) -> AnnouncedReply:
        """Say something to all guests."""
        return self._post(_path(place, "announce"), request, AnnouncedReply)

    def announce_more(self, place: str, message: int, body: bytes = b"", more: bool = True) -> AnnouncedReply:
        """More of the body of an open message."""
        return self._post(_path(place, "announce/more"), MoreRequest(message, body, more), AnnouncedReply)

    def talk(self, place: str, request: TalkRequest) -> TalkedReply:
        """Say something to the host."""
        return self._post(_path(place, "talk"), request, TalkedReply, ANSWER_SECONDS + request.patience)

    def admit(self, place: str, person: str, since: int | None = None) -> AnnouncedReply:
        """Let somebody in."""
        return self._post(_path(place, "admit"), AdmitRequest(person, since), AnnouncedReply)

    def reject(self, place: str, person: str, text: str = "", elsewhere: str | None = None) -> None:
        """Turn somebody away."""
        self._post(_path(place, "reject"), RejectRequest(person, text, elsewhere), DoneReply)

    def eject(self, place: str, person: str) -> AnnouncedReply:
        """Put a guest out."""
        return self._post(_path(place, "eject"), EjectRequest(person), AnnouncedReply)

    def leave_place(self, place: str, for_good: bool = True) -> None:
        """Leave for good, or for now."""
        self._post(_path(place, "leave"), LeaveRequest(for_good), DoneReply)

    def objects(self, place: str, prefix: str = "", at: bool = False) -> ObjectsReply:
        """What a place is decorated with."""
        return self._get(_path(place, "objects"), ObjectsReply, ObjectsQuery(prefix, at))

    def guests(self, place: str) -> GuestsReply:
        """Who is in, and who waits at the door."""
        return self._get(_path(place, "guests"), GuestsReply)

    def place_receipts(self, place: str, message: int) -> PlaceReceiptsReply:
        """Which guests have a message."""
        return self._get(_path(place, f"messages/{message}/receipts"), PlaceReceiptsReply)

    def listen(self, place: str, query: ListenQuery) -> Iterator[PlaceItemView]:
        """What is said in a place, item by item; the first is `SubscribedView`. Closing it ends it.

        With ``ack=manual``, call `consumed` with the number in the first item, by a client of its own.
        """
        return self._lines_of(_path(place, "listen"), query, _ITEM)

    def place_history(self, place: str, query: PastQuery) -> Iterator[PlaceItemView]:
        """Messages of the past in their order."""
        return self._lines_of(_path(place, "history"), query, _ITEM)

    def message_body(self, place: str, message: int, offset: int = 0) -> Iterator[PlaceItemView]:
        """The body of one message piece by piece, from a byte on."""
        return self._lines_of(_path(place, f"messages/{message}/body"), BodyQuery(offset), _ITEM)


def _path(place: str, what: str) -> str:
    return f"/v1/places/{place}/{what}"
