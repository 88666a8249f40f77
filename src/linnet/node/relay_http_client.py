"""A client for relays over HTTP: the whole format in one small class.

::

    async with RelayHttpClient(url, relay, identity) as http:
        page = await http.resync(room, None)
        await http.send(room, units, cards)

A relay under TLS is known by its device key alone, as on a link.
"""

from __future__ import annotations

import base64
import secrets
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import httpx
import msgspec
from msgspec import Struct

from linnet.core.errors import LocalError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.event.signing import encode_unit
from linnet.identity.cards import Card
from linnet.identity.text import Sort, to_text
from linnet.net.failure import LinkFailure
from linnet.net.tls import client_context, server_key
from linnet.node.relay_protocol import (
    PREFIX,
    AuthDagReply,
    AuthDagRequest,
    GetReply,
    GetRequest,
    InfoReply,
    RelayErrorReply,
    ResyncReply,
    ResyncRequest,
    SendReply,
    SendRequest,
)
from linnet.node.relay_signing import NONCE_BYTES, SignedRequest, authorization
from linnet.peer.config import Identity
from linnet.rooms.invitations import Ticket

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 35.0
_CLOCK_ERRORS = (Reason.STALE, Reason.FUTURE_TIME)

R = TypeVar("R", bound=Struct)
_pack = msgspec.msgpack.Encoder().encode
_encode = msgspec.json.Encoder().encode


class RelayDeclined(LocalError):
    """The relay declined the request; `status` and `reply` say why and what to do, `retry_after` when."""

    def __init__(self, status: int, reply: RelayErrorReply, retry_after: int | None = None) -> None:
        super().__init__(f"{status} {reply.error}: {reply.detail}")
        self.status = status
        self.reply = reply
        self.retry_after = retry_after


class RelayUnreachable(LocalError):
    """No relay answers at this address, or another one than expected."""


class RelayHttpClient:
    """A client for one device and one relay."""

    def __init__(
        self,
        url: str,
        relay: PeerId,
        identity: Identity,
        clock: Callable[[], float],
        proxy: ssl.SSLContext | None = None,
    ) -> None:
        """`url` is the part before `PREFIX`; behind a proxy it may have a path of its own.

        `proxy` says how to check the certificate of a proxy. Without it, the certificate must be the relay's
        own.
        """
        self._relay = relay
        self._identity = identity
        self._clock = clock
        self._ahead_ms = 0
        self._by_authority = proxy is not None
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            verify=client_context() if proxy is None else proxy,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    async def info(self) -> InfoReply:
        """Return the identity and state of the relay."""
        return await self._exchange("GET", "/info", b"", {}, InfoReply)

    async def send(
        self, room: TopicId, units: Sequence[Unverified], cards: Sequence[Card] = (), txn: str | None = None
    ) -> SendReply:
        """Send events to be kept. With the same `txn` it is the same request, for an answer that was lost."""
        return await self._put("send", room, units, cards, txn)

    async def forward(
        self, room: TopicId, units: Sequence[Unverified], cards: Sequence[Card] = (), txn: str | None = None
    ) -> SendReply:
        """Send events as one relay of the room to another: they are kept and go no further."""
        return await self._put("forward", room, units, cards, txn)

    async def resync(self, room: TopicId, cursor: str | None, limit: int = 256) -> ResyncReply:
        """Return a page of what the relay keeps, from a cursor on."""
        return await self._ask("POST", room, "resync", ResyncRequest(cursor, limit), ResyncReply)

    async def get(self, room: TopicId, ids: Sequence[EventId]) -> GetReply:
        """Return events by id."""
        texts = tuple(to_text(Sort.EVENT, event) for event in ids)
        return await self._ask("POST", room, "get", GetRequest(texts), GetReply)

    async def authdag(
        self, room: TopicId, heads: Sequence[EventId] = (), limit: int = 256, ticket: Ticket | None = None
    ) -> AuthDagReply:
        """Return the control events beyond these heads."""
        texts = tuple(to_text(Sort.EVENT, event) for event in heads)
        request = AuthDagRequest(texts, limit, None if ticket is None else _pack(ticket))
        return await self._ask("POST", room, "authdag", request, AuthDagReply)

    async def _put(
        self, name: str, room: TopicId, units: Sequence[Unverified], cards: Sequence[Card], txn: str | None
    ) -> SendReply:
        events = tuple(base64.b64encode(encode_unit(unit)).decode() for unit in units)
        request = SendRequest(events, tuple(map(_pack, cards)))
        return await self._ask("PUT", room, f"{name}/{txn or secrets.token_hex(16)}", request, SendReply)

    async def _ask(self, method: str, room: TopicId, call: str, request: Struct, kind: type[R]) -> R:
        path, body = f"/{to_text(Sort.TOPIC, room)}/{call}", _encode(request)
        try:
            return await self._signed(method, path, body, kind)
        except RelayDeclined as declined:
            if declined.reply.error not in _CLOCK_ERRORS:
                raise
        # Our clock is off: go by the relay's.
        self._ahead_ms = (await self.info()).clock_ms - int(self._clock() * 1000)
        return await self._signed(method, path, body, kind)

    async def _signed(self, method: str, path: str, body: bytes, kind: type[R]) -> R:
        header = authorization(
            self._identity.device,
            self._identity.card,
            SignedRequest(self._relay, method, (PREFIX + path).encode(), body),
            int(self._clock() * 1000) + self._ahead_ms,
            secrets.token_bytes(NONCE_BYTES),
        )
        headers = {"authorization": header, "content-type": "application/json"}
        return await self._exchange(method, path, body, headers, kind)

    async def _exchange(
        self, method: str, path: str, body: bytes, headers: dict[str, str], kind: type[R]
    ) -> R:
        try:
            response = await self._http.request(
                method, PREFIX + path, content=body, headers=headers, extensions={"trace": self._traced}
            )
        except httpx.TransportError as error:
            raise RelayUnreachable(f"the relay at {self._http.base_url} does not answer: {error}") from error
        try:
            if response.is_success:
                return msgspec.json.decode(response.content, type=kind)
            reply = msgspec.json.decode(response.content, type=RelayErrorReply)
        except msgspec.DecodeError as error:
            text = f"{self._http.base_url} answered {response.status_code}, but not as a relay does"
            raise RelayUnreachable(text) from error
        wait = response.headers.get("retry-after", "")
        raise RelayDeclined(response.status_code, reply, int(wait) if wait.isdigit() else None)

    async def _traced(self, event: str, told: dict[str, Any]) -> None:
        """Under TLS, check that it is the expected relay, before anything is sent."""
        if event != "connection.start_tls.complete" or self._by_authority:
            return
        stream = told["return_value"]
        try:
            key = server_key(stream.get_extra_info("ssl_object").getpeercert(binary_form=True))
        except LinkFailure as error:
            await stream.aclose()
            raise RelayUnreachable(f"{self._http.base_url}: {error.detail}") from error
        if key != self._relay:
            await stream.aclose()
            raise RelayUnreachable(f"{self._http.base_url} is another relay than the one that is meant")
