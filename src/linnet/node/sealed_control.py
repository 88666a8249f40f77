"""The endpoints of the control API that have to do with the readers of sealed streams."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.core.ids import AuthorId, DeviceId
from linnet.identity.text import Sort, from_text, to_text
from linnet.node.control_views import device_text, topic_text
from linnet.node.endpoints import Endpoints, json_response, query_of
from linnet.node.sealed_types import (
    AllowRequest,
    DisallowRequest,
    ReadersQuery,
    ReadersReply,
    ReaderView,
    ReadingRequest,
    RequestReply,
)
from linnet.streams.commands import ReaderIs, ReadersAre


class SealedControl(Endpoints):
    """The endpoints of sealed streams, over one node."""

    async def request_reading(self, request: Request) -> Response:
        """Ask to read a stream."""
        asked = await self._body(request, ReadingRequest)
        made = await self._node.sealed.request(asked.stream)
        return json_response(RequestReply(asked.stream, topic_text(made.topic), made.line))

    async def allow_reader(self, request: Request) -> Response:
        """Let a device in."""
        asked = await self._body(request, AllowRequest)
        told = await self._node.sealed.allow(asked.stream, asked.request, asked.from_now)
        return json_response(readers_view(asked.stream, told))

    async def disallow_reader(self, request: Request) -> Response:
        """Put readers out."""
        asked = await self._body(request, DisallowRequest)
        person = None if asked.person is None else AuthorId(from_text(Sort.PERSON, asked.person))
        device = None if asked.device is None else DeviceId(bytes.fromhex(asked.device))
        told = await self._node.sealed.disallow(asked.stream, person, device)
        return json_response(readers_view(asked.stream, told))

    async def stream_readers(self, request: Request) -> Response:
        """Who may read a stream."""
        asked = query_of(request, ReadersQuery)
        return json_response(readers_view(asked.stream, await self._node.sealed.readers(asked.stream)))


def readers_view(stream: str, told: ReadersAre) -> ReadersReply:
    """Who may read a stream."""
    return ReadersReply(
        stream,
        topic_text(told.topic),
        told.epoch,
        told.since,
        tuple(map(reader_view, told.readers)),
        tuple(map(reader_view, told.changed)),
    )


def reader_view(reader: ReaderIs) -> ReaderView:
    """A reader."""
    return ReaderView(
        to_text(Sort.PERSON, reader.person),
        reader.device.hex(),
        device_text(reader.key),
        reader.label,
        reader.since,
        reader.at,
    )
