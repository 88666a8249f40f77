"""WebSocket (RFC 6455) as a way to carry a stream of bytes; sans-IO, over the core of `websockets`.

Binary messages are read as one stream: a message may carry several of our frames, and the end of a message
means nothing.
"""

from __future__ import annotations

import logging

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidURI
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.net.address import Address
from linnet.net.failure import LinkFailure

PATH = "/linnet"
MESSAGE_BYTES = 2 * MIB
"""The most bytes of one WebSocket frame that are read: twice a full write of the other side."""

# Errors of a stranger are in our trace; the library must not log them as errors of ours.
_library_logger = logging.getLogger("linnet.websockets")
_library_logger.addHandler(logging.NullHandler())
_library_logger.propagate = False


class WebSocket:
    """One end of a WebSocket: fed with received bytes, it returns the carried data and the bytes to send."""

    def __init__(self, dialled: Address | None = None) -> None:
        self._protocol: ClientProtocol | ServerProtocol
        limit = (None, MESSAGE_BYTES)
        if dialled is None:
            self._protocol = ServerProtocol(max_size=limit, logger=_library_logger)
            return
        try:
            host = f"[{dialled.host}]" if ":" in dialled.host else dialled.host
            uri = parse_uri(f"wss://{host}:{dialled.port}{PATH}")
        except InvalidURI as error:
            raise LinkFailure(Reason.NO_ADDRESS, str(error)) from error
        client = ClientProtocol(uri, max_size=limit, logger=_library_logger)
        client.send_request(client.connect())
        self._protocol = client

    @property
    def is_open(self) -> bool:
        """Whether the opening handshake is done."""
        return self._protocol.state is State.OPEN

    def feed(self, data: bytes) -> bytes:
        """Return the data that these bytes carried. `LinkFailure` if they are no WebSocket of ours."""
        self._protocol.receive_data(data)
        carried: list[bytes] = []
        for event in self._protocol.events_received():
            match event:
                case Request():
                    self._answer(event)
                case Response():
                    self._check()
                case Frame():
                    if event.opcode is Opcode.TEXT:
                        raise LinkFailure(Reason.PROTOCOL_ERROR, "a text message on a WebSocket link")
                    if event.opcode in (Opcode.BINARY, Opcode.CONT):
                        carried.append(bytes(event.data))
        self._check()
        return b"".join(carried)

    def wrap(self, data: bytes) -> bytes:
        """Return data as one binary message, behind anything that has to go first."""
        self._protocol.send_binary(data)
        return self.to_send()

    def to_send(self) -> bytes:
        """Return the bytes of the WebSocket itself: its opening handshake, answers to pings."""
        return b"".join(self._protocol.data_to_send())

    def _answer(self, request: Request) -> None:
        assert isinstance(self._protocol, ServerProtocol)  # noqa: S101 - only a server gets requests
        self._check()  # What came behind the request may have broken it off: then it takes no answer.
        if request.path != PATH:
            self._protocol.send_response(self._protocol.reject(404, "Not a Linnet address.\n"))
            raise LinkFailure(Reason.PROTOCOL_ERROR, "a request for another path")
        self._protocol.send_response(self._protocol.accept(request))

    def _check(self) -> None:
        handshake = self._protocol.handshake_exc
        if handshake is not None:
            raise LinkFailure(Reason.PROTOCOL_ERROR, f"no WebSocket: {handshake}") from handshake
        wrong = self._protocol.parser_exc
        if wrong is not None:
            raise LinkFailure(Reason.PROTOCOL_ERROR, f"a broken WebSocket: {wrong}") from wrong
