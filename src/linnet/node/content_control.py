"""The endpoints of the control API that have to do with content."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.content.commands import GroupAt, Via
from linnet.node.addresses import parse_contact
from linnet.node.content_types import (
    CloseGroupRequest,
    ContentPublishRequest,
    ContentQuery,
    ForgetRequest,
    GroupRequest,
    GroupsFoundReply,
    GroupsQuery,
)
from linnet.node.content_views import (
    content_view,
    group_outcome_view,
    groups_view,
    item_view,
    listing_view,
    outcome_view,
)
from linnet.node.control_errors import ApiError
from linnet.node.control_types import DoneReply
from linnet.node.endpoints import Endpoints, json_response, query_of


class ContentControl(Endpoints):
    """The endpoints of content, over one node."""

    async def content(self, request: Request) -> Response:
        """How content stands."""
        return json_response(content_view(await self._node.content.status()))

    async def publish_content(self, request: Request) -> Response:
        """Say something."""
        asked = await self._body(request, ContentPublishRequest)
        if asked.text is not None and asked.body is not None:
            raise ApiError(400, "bad_request", "give a text or a body, one of them")
        body = asked.body if asked.body is not None else (asked.text or "").encode()
        content = self._node.content
        group = None if asked.via is Via.SCOUT else await content.group_for(asked.attributes)
        if group is not None:
            said = await content.publish_to_group(group, asked.attributes, body, asked.confirm)
            return json_response(group_outcome_view(group, said))
        if asked.via is Via.FAST:
            detail = "no group of this node carries it"
            raise ApiError(409, "unknown", detail, "open one with: linnet content advertise")
        return json_response(outcome_view(await content.publish(asked.attributes, body, asked.confirm)))

    async def subscribe_content(self, request: Request) -> Response:
        """Hand over what a predicate accepts."""
        asked = query_of(request, ContentQuery)
        if asked.group is not None and asked.at is None:
            raise ApiError(400, "bad_request", "a group is at an address: give at as well")
        at = None if asked.at is None else GroupAt(parse_contact(asked.at), asked.group or asked.predicate)
        reading = self._node.content.subscribe(asked.predicate, asked.name, asked.via, at)
        return await self._written(reading, asked.ack == "manual", item_view)

    async def content_groups(self, request: Request) -> Response:
        """Groups of ours, and those that this node is in."""
        return json_response(groups_view(await self._node.content.groups()))

    async def find_content_groups(self, request: Request) -> Response:
        """Look for groups."""
        found = await self._node.content.find_groups(query_of(request, GroupsQuery).predicate)
        return json_response(GroupsFoundReply(tuple(map(listing_view, found.groups)), found.unanswered))

    async def open_content_group(self, request: Request) -> Response:
        """Open a group."""
        asked = await self._body(request, GroupRequest)
        opened = await self._node.content.open_group(asked.predicate, asked.listed)
        ours = groups_view(await self._node.content.groups()).groups
        return json_response(next(each for each in ours if each.predicate == opened.predicate))

    async def close_content_group(self, request: Request) -> Response:
        """Close a group."""
        asked = await self._body(request, CloseGroupRequest)
        await self._node.content.close_group(asked.predicate)
        return json_response(DoneReply())

    async def forget_content(self, request: Request) -> Response:
        """End a kept subscription."""
        asked = await self._body(request, ForgetRequest)
        await self._node.content.forget(asked.name)
        return json_response(DoneReply())
