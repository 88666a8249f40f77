"""The endpoints of the control API that have to do with places. Places are named by their ids here."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.core.errors import LocalError
from linnet.core.ids import AuthorId, TopicId
from linnet.identity.text import Sort, from_text
from linnet.node.addresses import parse_contact
from linnet.node.control_errors import ApiError
from linnet.node.control_types import DoneReply
from linnet.node.endpoints import Endpoints, json_response, query_of
from linnet.node.place import NAME, Place, assigned, operated, transient
from linnet.node.place_types import (
    AdmitRequest,
    AnnounceRequest,
    BodyQuery,
    ChangeRequest,
    EjectRequest,
    EnterRequest,
    HostRequest,
    LeaveRequest,
    ListenQuery,
    MoreRequest,
    ObjectsQuery,
    PastQuery,
    PlaceReply,
    PlacesReply,
    RejectRequest,
    TalkRequest,
)
from linnet.node.place_views import (
    announced_view,
    guests_view,
    heard_view,
    objects_view,
    piece_view,
    place_view,
    receipts_view,
    talked_view,
)
from linnet.places.address import parse_address

LARGEST_MESSAGE = 2**53


class PlaceControl(Endpoints):
    """The endpoints of places, over one node."""

    async def places(self, request: Request) -> Response:
        """Every place."""
        names = await self._node.places.names()
        statuses = await self._node.places.statuses()
        return json_response(
            PlacesReply(tuple(place_view(each, names.get(each.deed.place)) for each in statuses))
        )

    async def host_place(self, request: Request) -> Response:
        """Found a place."""
        asked = await self._body(request, HostRequest)
        cohosts = tuple(map(_person, asked.cohosts))
        keepers = tuple(map(parse_contact, asked.keepers))
        return await self._told(await self._node.places.host(asked.policy, asked.name, cohosts, keepers))

    async def enter_place(self, request: Request) -> Response:
        """Enter a place."""
        asked = await self._body(request, EnterRequest)
        contacts = tuple(map(parse_contact, asked.contacts))
        return await self._told(
            await self._node.places.enter(
                asked.where, contacts, asked.text, patience=asked.patience, waits=asked.waits
            )
        )

    async def place(self, request: Request) -> Response:
        """A place as it stands."""
        return await self._told(self._place(request))

    async def change_place(self, request: Request) -> Response:
        """Change the deed."""
        asked = await self._body(request, ChangeRequest)
        cohosts = None if asked.cohosts is None else tuple(map(_person, asked.cohosts))
        keepers = None if asked.keepers is None else tuple(map(parse_contact, asked.keepers))
        place = self._place(request)
        await place.change(asked.policy, cohosts, keepers)
        return await self._told(place)

    async def announce(self, request: Request) -> Response:
        """Say something to all guests."""
        asked = await self._body(request, AnnounceRequest)
        body = _body_of(asked.text, asked.body)
        changes = (*assigned(asked.state), *operated("+", asked.added), *operated("-", asked.taken))
        words = (asked.method, (*changes, *transient(asked.variables)), asked.reset)
        return json_response(announced_view(await self._place(request).say(body, *words, asked.more)))

    async def announce_more(self, request: Request) -> Response:
        """More of a body."""
        asked = await self._body(request, MoreRequest)
        place = self._place(request)
        return json_response(announced_view(await place.say_more(asked.message, asked.body, asked.more)))

    async def talk(self, request: Request) -> Response:
        """Say something to the host."""
        asked = await self._body(request, TalkRequest)
        body = _body_of(asked.text, asked.body)
        place = self._place(request)
        return json_response(
            talked_view(await place.talk(body, asked.method, asked.variables, asked.patience))
        )

    async def admit(self, request: Request) -> Response:
        """Let somebody in."""
        asked = await self._body(request, AdmitRequest)
        place = self._place(request)
        return json_response(announced_view(await place.admit(_person(asked.person), asked.since)))

    async def reject(self, request: Request) -> Response:
        """Turn somebody away."""
        asked = await self._body(request, RejectRequest)
        elsewhere = None if asked.elsewhere is None else parse_address(asked.elsewhere)
        await self._place(request).reject(_person(asked.person), asked.text, elsewhere=elsewhere)
        return json_response(DoneReply())

    async def eject(self, request: Request) -> Response:
        """Put a guest out."""
        asked = await self._body(request, EjectRequest)
        return json_response(announced_view(await self._place(request).eject(_person(asked.person))))

    async def leave_place(self, request: Request) -> Response:
        """Leave for good, or for now."""
        asked = await self._body(request, LeaveRequest)
        place = self._place(request)
        await (place.leave() if asked.for_good else place.disconnect())
        return json_response(DoneReply())

    async def objects(self, request: Request) -> Response:
        """What a place is decorated with."""
        asked = query_of(request, ObjectsQuery)
        return json_response(objects_view(await self._place(request).objects(asked.prefix, asked.at)))

    async def guests(self, request: Request) -> Response:
        """Who is in."""
        return json_response(guests_view(await self._place(request).guests()))

    async def listen(self, request: Request) -> Response:
        """Hand over what is said in a place."""
        asked = query_of(request, ListenQuery)
        methods = None if asked.methods is None else tuple(asked.methods.split(","))
        listening = self._place(request).listen(
            *(methods or ()), since=asked.since, name=asked.name, largest=asked.largest, objects=asked.objects
        )
        return await self._written(listening, asked.ack == "manual", heard_view)

    async def place_history(self, request: Request) -> Response:
        """Hand over messages of the past."""
        asked = query_of(request, PastQuery)
        past = self._place(request).history(asked.first, asked.last, asked.largest)
        return await self._written(past, False, heard_view)

    async def message_body(self, request: Request) -> Response:
        """Hand over one body."""
        asked = query_of(request, BodyQuery)
        body = self._place(request).body(_message(request), asked.offset)
        return await self._written(body, False, piece_view)

    async def place_receipts(self, request: Request) -> Response:
        """Which guests have a message."""
        return json_response(receipts_view(await self._place(request).receipts(_message(request))))

    async def _told(self, place: Place) -> Response:
        name = await place.look_at(NAME)
        words = None if name is None else name[1].decode("utf-8", "replace")
        try:
            view = place_view(await place.status(), words)
        except LocalError as error:
            raise ApiError(404, "not_found", str(error)) from error
        return json_response(PlaceReply(view, (await place.address()).text))

    def _place(self, request: Request) -> Place:
        return self._node.places.by_id(TopicId(from_text(Sort.TOPIC, request.path_params["place"])))


def _person(text: str) -> AuthorId:
    return AuthorId(from_text(Sort.PERSON, text))


def _body_of(text: str | None, body: bytes | None) -> bytes:
    if text is not None and body is not None:
        raise ApiError(400, "bad_request", "give a text or a body, one of them")
    return body if body is not None else (text or "").encode()


def _message(request: Request) -> int:
    text = request.path_params["message"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 17 else 0
    if not 1 <= number <= LARGEST_MESSAGE:
        raise ApiError(404, "not_found", "messages are counted from 1")
    return number
