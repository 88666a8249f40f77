"""The endpoints of the control API that have to do with names."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.core.ids import AuthorId, TopicId
from linnet.identity.text import Sort, from_text
from linnet.node.endpoints import Endpoints, json_response
from linnet.node.name_types import (
    NamesFileReply,
    PetnameRequest,
    PublishNameRequest,
    RemoveNameRequest,
    RemovePetnameRequest,
    ResolveNameRequest,
    TakeInNamesRequest,
    TakenInReply,
)
from linnet.node.name_views import name_view, names_view, petnames_view, resolve_view


class NameControl(Endpoints):
    """The endpoints of names, over one node."""

    async def names(self, request: Request) -> Response:
        """What the zone says."""
        return json_response(names_view(await self._node.names.list()))

    async def publish_name(self, request: Request) -> Response:
        """Say something under a label."""
        asked = await self._body(request, PublishNameRequest)
        said = await self._node.names.publish(
            asked.label,
            None if asked.place is None else TopicId(from_text(Sort.TOPIC, asked.place)),
            asked.contacts,
            None if asked.zone is None else _person(asked.zone),
            asked.lifetime,
            asked.renew,
            asked.password,
        )
        return json_response(name_view(said))

    async def remove_name(self, request: Request) -> Response:
        """Take back a label."""
        asked = await self._body(request, RemoveNameRequest)
        return json_response(name_view(await self._node.names.withdraw(asked.label, asked.password)))

    async def resolve_name(self, request: Request) -> Response:
        """Where does an address lead?"""
        asked = await self._body(request, ResolveNameRequest)
        return json_response(resolve_view(await self._node.names.look_up(asked.address, asked.password)))

    async def export_names(self, request: Request) -> Response:
        """Our own records as a file."""
        made = await self._node.names.export()
        return json_response(NamesFileReply(made.records, made.data))

    async def take_in_names(self, request: Request) -> Response:
        """Keep the records of a file."""
        asked = await self._body(request, TakeInNamesRequest)
        taken = await self._node.names.take_in(asked.data)
        return json_response(TakenInReply(taken.kept, tuple(reason.value for reason in taken.refused)))

    async def petnames(self, request: Request) -> Response:
        """Whom the user knows."""
        return json_response(petnames_view(await self._node.names.petnames()))

    async def set_petname(self, request: Request) -> Response:
        """Know a person by a name."""
        asked = await self._body(request, PetnameRequest)
        told = await self._node.names.set_petname(asked.name, _person(asked.person))
        return json_response(petnames_view(told))

    async def remove_petname(self, request: Request) -> Response:
        """Know nobody by a name any more."""
        asked = await self._body(request, RemovePetnameRequest)
        return json_response(petnames_view(await self._node.names.remove_petname(asked.name)))


def _person(text: str) -> AuthorId:
    return AuthorId(from_text(Sort.PERSON, text))
