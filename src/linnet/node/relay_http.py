"""The HTTP interface of a relay: authentication, limits and translation, and nothing else.

Every request becomes one message of `linnet.rooms.messages`, given to the machine on behalf of the device
that signed it; there it is decided what a room allows, as for messages over a link.
docs/reference/relay-http.md is its reference.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from linnet.api.openapi import HttpOperation, Media
from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.identity.addresses import HttpAddress, parse_http
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, from_text, to_text
from linnet.net.tls import server_context
from linnet.node.home import HomeError
from linnet.node.library import Node
from linnet.node.ports import KeptPorts
from linnet.node.relay_admission import Door, RelayHttpLimits, Transactions, seconds_text
from linnet.node.relay_protocol import (
    EVENTS_PER_SEND,
    IDS_PER_GET,
    RELAY_OPERATIONS,
    VERSIONS,
    AuthDagRequest,
    GetRequest,
    InfoReply,
    LimitsView,
    RelayHttpError,
    ResyncRequest,
    SendRequest,
    TxnText,
    relay_document,
    told,
)
from linnet.node.relay_signing import SCHEME, WINDOW_MS, Proof
from linnet.node.relay_translation import (
    control_message,
    control_reply,
    get_reply,
    parcel_of,
    resync_message,
    resync_reply,
    send_reply,
    want_message,
)
from linnet.node.web_server import WebServer, bind_tcp, serving
from linnet.rooms.commands import AskRelay, RelayReplies
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    RelayForward,
    RelayInfo,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.trace.records import Kind, Record

Ask: TypeAlias = Callable[[AskRelay], Awaitable[RelayReplies]]
"""Asks the machine; it raises errors that `linnet.node.relay_protocol.told` can translate."""

Note: TypeAlias = Callable[[Record], None]
"""Writes to the node's trace."""

AskedMessage: TypeAlias = RelaySend | RelayForward | Resync | Want | AskControl | RelayInfo

Q = TypeVar("Q", bound=Struct)
M = TypeVar("M")
_encode = msgspec.json.Encoder().encode
_UNAUTHORIZED = 401
_HTTP_WORDS = {404: "not_found", 405: "method_not_allowed"}


class RelayIdentity(Struct, frozen=True):
    """The identity of the relay, which requests must name."""

    peer: PeerId
    person: AuthorId
    retention: float
    """Seconds that events are kept in rooms without a setting of their own."""


class RelayHttp:
    """The endpoints, over a callable that asks the machine."""

    def __init__(
        self,
        ask: Ask,
        identity: RelayIdentity,
        clock: Callable[[], float],
        note: Note = lambda record: None,
        limits: RelayHttpLimits | None = None,
    ) -> None:
        self._ask = ask
        self._identity = identity
        self._clock = clock
        self._note = note
        self._limits = limits = RelayHttpLimits() if limits is None else limits
        self._door = Door(identity.peer, clock, limits)
        self._transactions = Transactions(limits.answers, limits.answer_age)
        self._requests = 0
        self._document = _encode(relay_document())

    def app(self) -> Starlette:
        """Return the application to be served."""
        routes = [
            Route(operation.path, self._endpoint(operation), methods=[operation.method])
            for operation in RELAY_OPERATIONS
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error})
        # A redirect would need a new signature: a path that does not exist stays so.
        app.router.redirect_slashes = False
        return app

    def _endpoint(self, operation: HttpOperation) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            try:
                with self._door.admitted(request):
                    return await self._answer(operation, request)
            except ClientDisconnect:
                raise
            except Exception as error:  # Every error is told as JSON; one that is not ours is a 500.
                return self._refusal(request, told(error))

        return answered

    async def _answer(self, operation: HttpOperation, request: Request) -> Response:
        if operation.name == "info":
            return _json(_encode(await self._info()))
        if operation.name == "openapi":
            return _json(self._document)
        proof, body = await self._door.authenticated(request)
        match operation.name:
            case "send" | "forward":
                return _json(await self._take(operation.name, request, proof, body))
            case "resync":
                return _json(_encode(await self._resync(request, proof, body)))
            case "get":
                return _json(_encode(await self._get(request, proof, body)))
            case _:
                return _json(_encode(await self._authdag(request, proof, body)))

    async def _take(self, name: str, request: Request, proof: Proof, body: bytes) -> bytes:
        room, asked = _room(request), _decoded(body, SendRequest)
        txn = _txn(request)
        parcel = parcel_of(asked)
        kind = RelaySend if name == "send" else RelayForward

        async def work() -> bytes:
            taken: RelayTaken | None = None
            if parcel.units:
                message = kind(room, self._number(), parcel.units, parcel.cards)
                taken = await self._reply(proof, message, RelayTaken)
            return _encode(send_reply(parcel, taken))

        key = hashlib.sha256(proof.device + proof.person + room + f"{name}/{txn}".encode()).digest()
        digest = hashlib.sha256(body).digest()
        answer = await self._transactions.once(key, digest, self._clock(), work)
        if answer is None:
            raise RelayHttpError(Reason.IN_USE, "another request of this device had this transaction id")
        return answer

    async def _resync(self, request: Request, proof: Proof, body: bytes) -> Struct:
        message = resync_message(_room(request), self._number(), _decoded(body, ResyncRequest))
        return resync_reply(await self._reply(proof, message, ResyncPage))

    async def _get(self, request: Request, proof: Proof, body: bytes) -> Struct:
        message = want_message(_room(request), self._number(), _decoded(body, GetRequest))
        return get_reply(await self._reply(proof, message, Given))

    async def _authdag(self, request: Request, proof: Proof, body: bytes) -> Struct:
        asked = _decoded(body, AuthDagRequest)
        message = control_message(_room(request), self._number(), asked)
        return control_reply(await self._reply(proof, message, ControlPage), asked.limit)

    async def _info(self) -> Struct:
        own, limits = self._identity, self._limits
        question = AskRelay(own.peer, own.person, RelayInfo(0, 0, 0, 0, 0, request=True))
        info = await self._asked(question, RelayInfo)
        return InfoReply(
            VERSIONS,
            to_text(Sort.DEVICE, own.peer),
            to_text(Sort.PERSON, own.person),
            info.rooms,
            info.kept_events,
            info.kept_bytes,
            info.capacity_bytes,
            int(own.retention * 1000),
            int(self._clock() * 1000),
            LimitsView(
                EVENTS_PER_SEND,
                IDS_PER_GET,
                limits.request_bytes,
                WINDOW_MS,
                limits.device_rate,
                limits.device_burst,
            ),
        )

    async def _reply(self, proof: Proof, message: AskedMessage, kind: type[M]) -> M:
        return await self._asked(AskRelay(proof.device, proof.person, message), kind)

    async def _asked(self, question: AskRelay, kind: type[M]) -> M:
        async with asyncio.timeout(self._limits.answer_seconds):
            replies = await self._ask(question)
        for reply in replies.messages:
            if isinstance(reply, kind):
                return reply
        raise RelayHttpError(Reason.BUG, f"the relay did not answer by a {kind.__name__}")

    def _number(self) -> int:
        self._requests += 1
        return self._requests

    def _refusal(self, request: Request, error: RelayHttpError) -> Response:
        """Return an error as a response; record the refusal, but nothing of the request's content."""
        words = error.reply.detail if error.reason is Reason.BUG else error.reply.error
        note = f"relay http: {error.status} {words}"
        self._note(Record(Kind.REJECTED, events=0, reason=error.reason, note=note))
        return _error(error)


def _room(request: Request) -> TopicId:
    try:
        return TopicId(from_text(Sort.TOPIC, request.path_params["room"]))
    except BadText as error:
        raise RelayHttpError(Reason.MALFORMED, str(error), hint="the path names the room, lt1…") from error


def _txn(request: Request) -> str:
    try:
        return msgspec.convert(request.path_params["txn"], TxnText)
    except msgspec.ValidationError as error:
        detail = f"the transaction id: {error}"
        raise RelayHttpError(Reason.MALFORMED, detail, hint="1 to 128 of A-Z a-z 0-9 . _ ~ -") from error


def _decoded(body: bytes, kind: type[Q]) -> Q:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RelayHttpError(Reason.MALFORMED, str(error)) from error


def _json(content: bytes, status: int = 200) -> Response:
    return Response(content, status, media_type=Media.JSON.value)


def _error(error: RelayHttpError) -> Response:
    response = _json(_encode(error.reply), error.status)
    if error.retry_after is not None:
        response.headers["retry-after"] = seconds_text(error.retry_after)
    if error.status == _UNAUTHORIZED:
        response.headers["www-authenticate"] = SCHEME
    return response


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = f"{request.method} {request.url.path[:200]}"
    hint = "see /linnet/relay/v1/openapi.json"
    response = _error(RelayHttpError(_HTTP_WORDS.get(status, "bad_request"), detail, status, hint))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


_KEEP_ALIVE_SECONDS = 15
_CONNECTIONS = 1024
"""The most connections at once; one more is answered 503 in plain text, without being read."""


@asynccontextmanager
async def serve_relay(
    app: ASGIApp, address: HttpAddress, key: SigningKey, ports: KeptPorts | None = None
) -> AsyncIterator[str]:
    """Serve an application while the block lasts; yields its URL, with the port that the system chose."""
    sock = _bound(address, KeptPorts(None) if ports is None else ports)
    context = server_context(key) if address.tls else None
    limits = {"limit_concurrency": _CONNECTIONS, "timeout_keep_alive": _KEEP_ALIVE_SECONDS}
    url = str(_at_port(address, _port(sock)))
    async with serving([(sock, WebServer(app, context, **limits))], "relay HTTP"):
        yield url


def _bound(address: HttpAddress, ports: KeptPorts) -> socket.socket:
    """Bind the requested port; for "any", that of the last start if it is free."""
    setting = f"relay.http: {address}"
    if address.port:
        return bind_tcp(address.host, address.port, setting)
    kept = ports.port(str(address))
    try:
        sock = bind_tcp(address.host, kept, setting)
    except HomeError:
        if not kept:
            raise
        sock = bind_tcp(address.host, 0, setting)
        ports.tell_moved(str(_at_port(address, kept)), str(_at_port(address, _port(sock))))
    ports.keep(str(address), _port(sock))
    return sock


def _port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def _at_port(address: HttpAddress, port: int) -> HttpAddress:
    return HttpAddress(address.host, port, address.tls)


def serve_relay_of(node: Node) -> AbstractAsyncContextManager[str]:
    """Serve the HTTP interface of a running node whose configuration asks for one."""
    section = node.config.relay
    identity = RelayIdentity(node.peer, node.author, section.max_lifetime)
    face = RelayHttp(node.ask_relay, identity, node.clock.now, node.note)
    return serve_relay(face.app(), parse_http(section.http), node.identity.device, node.ports)
