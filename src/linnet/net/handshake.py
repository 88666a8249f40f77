"""The handshake of a link: both ends know each other's keys, then both say `Hello`.

A transport proves the server's key to the client: `Connection.remote_key` is set there, and `local_key` on
the other side. The client's key is proved here::

    client                                   server
      |  <---------- Challenge(nonce) -------- |
      |  Proof(own key, signature), Hello ---> |   the server checks the signature
      |  <------- Hello, or Bye(reason) ------ |   the link is up

The signature covers a tag, the server's key, the client's key and the server's nonce. It is good
for this server only, so nobody in the middle can pass it on; and for this connection only.
See docs/adr/0004-link-authentication.md.

If the transport has proved both keys, only `Hello` goes both ways. If it has proved neither, there is no
link: without a channel binding a signature could be passed on.

On a local network both ends prove the devices behind the keys that they announce::

    client                                        server
      |  ----- TLS 1.3, certificate of its lan key ----> |   the client asked for it by name
      |  <------------- Challenge(nonce) --------------- |
      |  Introduction(both own keys, nonce, two sigs) -> |   the server knows the client
      |  <---- Presented(device key, signature) -------- |   the client knows the server
      |  Hello, or Bye if there is a link already -----> |
      |  <--------------- Hello ------------------------ |   the link is up

A node that only listens sees the lan keys, which last for one network and day; the device keys travel
encrypted. A peer that takes part learns them: a link is to a device, here as elsewhere. Each
signature covers a tag, both lan keys, both nonces and both device keys, as far as they are
known: it is good for these two and this connection only.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.hello import Hello
from linnet.core.ids import PeerId, WirePeerId, WireSignature
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, verify
from linnet.net.failure import LinkFailure
from linnet.net.transport import Connection, Consumer, Lane
from linnet.peer.messages import CODEC, FIRST_CODEC, Bye
from linnet.wire.codec import Codec
from linnet.wire.frame import HEADER_BYTES, frame

_HELD_BYTES = 64 * KIB
"""The most bytes that the peer may send ahead before the connection is a link."""


class FrameStream:
    """The first consumer of a connection: holds received data until they are read, in small frames only."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._held = bytearray()
        self._is_full = False
        self._reason: Reason | None = None
        self._arrival: asyncio.Future[None] | None = None
        connection.hand_over(self)

    async def read_frame(self, limit: int) -> bytes:
        """Return the next frame. `LinkFailure` if none comes, or if it is longer than `limit` bytes."""
        while True:
            if len(self._held) >= HEADER_BYTES:
                length = int.from_bytes(self._held[:HEADER_BYTES], "big")
                if length > limit:
                    detail = f"{length} bytes, at most {limit} are read here"
                    raise LinkFailure(Reason.OVERSIZED_FRAME, detail)
                end = HEADER_BYTES + length
                if len(self._held) >= end:
                    payload = bytes(self._held[HEADER_BYTES:end])
                    del self._held[:end]
                    return payload
            await self._wait_for_more()

    def write(self, data: bytes) -> None:
        """Send whole frames."""
        self.connection.write(data)

    def hand_over(self, consumer: Consumer) -> None:
        """Give this consumer everything from now on, beginning with the data not read here."""
        self._resume()
        if self._held:
            held, self._held = bytes(self._held), bytearray()
            consumer.data_received(held)
        self.connection.hand_over(consumer)

    def data_received(self, data: bytes) -> None:
        """See `Consumer`."""
        self._held += data
        if len(self._held) > _HELD_BYTES and not self._is_full:
            self._is_full = True
            self.connection.pause_reading()
        self._wake()

    def writable(self) -> None:
        """See `Consumer`."""

    def connection_lost(self, reason: Reason) -> None:
        """See `Consumer`."""
        self._reason = reason
        self._wake()

    async def _wait_for_more(self) -> None:
        if self._reason is not None:
            raise LinkFailure(self._reason, "the connection was closed during the handshake")
        self._resume()
        self._arrival = asyncio.get_running_loop().create_future()
        await self._arrival
        self._arrival = None

    def _resume(self) -> None:
        if self._is_full:
            self._is_full = False
            self.connection.resume_reading()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


HANDSHAKE_BYTES = 16 * KIB
"""The most bytes of a frame of the handshake; the longest possible `Hello` has less than half."""

M = TypeVar("M")
NONCE_BYTES = 32
_TAG = b"linnet/link/1"


class Challenge(Struct, frozen=True, array_like=True, tag=100, gc=False):
    """The server's challenge, for the client to sign."""

    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class Proof(Struct, frozen=True, array_like=True, tag=101, gc=False):
    """The client's key, and the proof that it holds it."""

    key: WirePeerId
    sig: WireSignature


class Client(Struct, frozen=True):
    """A client that has proved its key and sent its `Hello`."""

    peer: PeerId
    hello: Hello


CHALLENGE: Codec[Challenge] = Codec(Challenge)
_PROOF: Codec[Proof] = Codec(Proof)
_ANSWER: Codec[Hello | Bye] = Codec(Hello | Bye)


def prove(key: SigningKey, server: PeerId, nonce: bytes) -> Proof:
    """Return this client's proof for a server's nonce."""
    signature = key.sign(_statement(server, key.public, nonce))
    return Proof(PeerId(key.public), signature)


async def send_proof(stream: FrameStream, key: SigningKey, hello: Hello) -> None:
    """Send `Hello` to a server, after proving our key to it if the transport has not.

    The proof is bound to the key that the transport has proved. The caller must compare that key with the one
    it dialled.
    """
    server = dialled_key(stream)
    if stream.connection.local_key is not None:
        send_hello(stream, hello)
        return
    challenge = await read_message(stream, CHALLENGE)
    proof = prove(key, server, challenge.nonce)
    stream.write(frame(_PROOF.encode(proof)) + frame(FIRST_CODEC.encode(hello)))


def dialled_key(stream: FrameStream) -> PeerId:
    """Return the key that the transport has proved for the server; `LinkFailure` if it has proved none."""
    server = stream.connection.remote_key
    if server is None:
        raise LinkFailure(Reason.WRONG_KEY, "the transport does not prove who answers")
    return server


async def read_hello(stream: FrameStream, ours: Hello) -> Hello:
    """Return the server's `Hello`, which makes the link; `LinkFailure` with its reason if it refuses."""
    answer = await read_message(stream, _ANSWER)
    if isinstance(answer, Bye):
        raise LinkFailure(answer.reason, "the peer refused the link")
    if not ours.speaks(answer):
        refuse(stream, Reason.VERSION_MISMATCH)
        raise LinkFailure(Reason.VERSION_MISMATCH, describe_versions(ours, answer))
    return answer


async def check_client(stream: FrameStream, key: SigningKey, ours: Hello) -> Client:
    """Make a client prove its key, if the transport has not, and read its `Hello`; ours is not sent yet.

    A client that fails is sent the reason before `LinkFailure` is raised.
    """
    try:
        peer = await _proved_key(stream, PeerId(key.public))
        hello = await read_message(stream, FIRST_CODEC)
        if not ours.speaks(hello):
            raise LinkFailure(Reason.VERSION_MISMATCH, describe_versions(ours, hello))
    except LinkFailure as failure:
        refuse(stream, failure.reason)
        raise
    return Client(peer, hello)


def send_hello(stream: FrameStream, hello: Hello) -> None:
    """Send `Hello`: the last message of a server, and the only one of a client whose key is proved."""
    stream.write(frame(FIRST_CODEC.encode(hello)))


def refuse(stream: FrameStream, reason: Reason) -> None:
    """Send the reason why there will be no link, and close."""
    connection = stream.connection
    if connection.is_open:
        connection.write(frame(CODEC.encode(Bye(reason))), Lane.LAST)
        connection.close(reason)


async def _proved_key(stream: FrameStream, own: PeerId) -> PeerId:
    connection = stream.connection
    if connection.local_key != own:
        raise LinkFailure(Reason.AUTH_FAILED, "the transport does not prove our key to the client")
    if connection.remote_key is None:
        nonce = secrets.token_bytes(NONCE_BYTES)
        stream.write(frame(CHALLENGE.encode(Challenge(nonce))))
        proof = await read_message(stream, _PROOF)
        _check_proof(proof, own, nonce)
        return proof.key
    if connection.remote_key == own:
        raise LinkFailure(Reason.AUTH_FAILED, "the client has our own key")
    return connection.remote_key


def _check_proof(proof: Proof, server: PeerId, nonce: bytes) -> None:
    if proof.key == server:
        raise LinkFailure(Reason.AUTH_FAILED, "the client claims our own key")
    statement = _statement(server, proof.key, nonce)
    _check(proof.key, statement, proof.sig, "the client's proof does not fit its key")


def _statement(server: bytes, client: bytes, nonce: bytes) -> bytes:
    # All parts have fixed lengths, so no two statements have the same bytes.
    return _TAG + server + client + nonce


async def read_message(stream: FrameStream, codec: Codec[M]) -> M:
    """Return the next message of a handshake; `LinkFailure` if the codec cannot read it."""
    payload = await stream.read_frame(HANDSHAKE_BYTES)
    try:
        return codec.decode(payload)
    except MalformedMessage as error:
        raise LinkFailure(Reason.PROTOCOL_ERROR, error.detail) from error


def describe_versions(ours: Hello, theirs: Hello) -> str:
    """Describe for people why two nodes share no wire version."""
    return (
        f"the peer speaks wire versions {theirs.oldest} to {theirs.newest}, "
        f"we speak {ours.oldest} to {ours.newest}"
    )


_CLIENT = b"linnet/lan/client/1"
_CLIENT_LAN = b"linnet/lan/client-lan/1"
_SERVER = b"linnet/lan/server/1"


class Introduction(Struct, frozen=True, array_like=True, tag=102, gc=False):
    """The client's keys, and the proofs that it holds them."""

    key: WirePeerId
    lan: WirePeerId
    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    sig: WireSignature
    lan_sig: WireSignature


class Presented(Struct, frozen=True, array_like=True, tag=103, gc=False):
    """The server's device key, and the proof that it holds it."""

    key: WirePeerId
    sig: WireSignature


class LocalClient(Struct, frozen=True):
    """A client on a local network that has proved its keys, and has received ours."""

    peer: PeerId
    lan: bytes
    """The key that the client announces on the network."""


_INTRODUCTION: Codec[Introduction] = Codec(Introduction)
_PRESENTED: Codec[Presented | Bye] = Codec(Presented | Bye)


async def introduce(stream: FrameStream, device: SigningKey, own: SigningKey) -> PeerId:
    """Prove our keys to the server whose lan key was dialled; return its device key, proved."""
    challenge = await read_message(stream, CHALLENGE)
    nonce = secrets.token_bytes(NONCE_BYTES)
    known = dialled_key(stream) + own.public + challenge.nonce + nonce + device.public
    told = Introduction(
        PeerId(device.public),
        PeerId(own.public),
        nonce,
        device.sign(_CLIENT + known),
        own.sign(_CLIENT_LAN + known),
    )
    stream.write(frame(_INTRODUCTION.encode(told)))
    answer = await read_message(stream, _PRESENTED)
    if isinstance(answer, Bye):
        raise LinkFailure(answer.reason, "the peer refused to be met")
    if answer.key == device.public:
        raise LinkFailure(Reason.WRONG_KEY, "this is our own key")
    _check(answer.key, _SERVER + known + answer.key, answer.sig, "the server's proof does not fit its key")
    return answer.key


async def check_local_client(stream: FrameStream, device: SigningKey, own: SigningKey) -> LocalClient:
    """Make a stranger prove its keys, and prove ours to it. It may go on to be a link.

    A stranger that fails is sent the reason before `LinkFailure` is raised.
    """
    nonce = secrets.token_bytes(NONCE_BYTES)
    stream.write(frame(CHALLENGE.encode(Challenge(nonce))))
    try:
        told = await read_message(stream, _INTRODUCTION)
        if device.public == told.key or own.public == told.lan:
            raise LinkFailure(Reason.AUTH_FAILED, "the client claims a key of ours")
        known = own.public + told.lan + nonce + told.nonce + told.key
        _check(told.key, _CLIENT + known, told.sig, "the client's proof does not fit its key")
        _check(told.lan, _CLIENT_LAN + known, told.lan_sig, "the client's proof does not fit its lan key")
    except LinkFailure as failure:
        refuse(stream, failure.reason)
        raise
    proof = Presented(PeerId(device.public), device.sign(_SERVER + known + device.public))
    stream.write(frame(_PRESENTED.encode(proof)))
    return LocalClient(told.key, told.lan)


async def read_client_hello(stream: FrameStream, ours: Hello) -> Hello:
    """Return the client's `Hello`, if it wants a link; `LinkFailure` with its reason if it does not."""
    try:
        said = await read_message(stream, _ANSWER)
        if isinstance(said, Bye):
            raise LinkFailure(Reason.REMOTE_CLOSED, f"the client wants no link: {said.reason}")
        if not ours.speaks(said):
            raise LinkFailure(Reason.VERSION_MISMATCH, describe_versions(ours, said))
    except LinkFailure as failure:
        refuse(stream, failure.reason)
        raise
    return said


def _check(key: bytes, statement: bytes, signature: bytes, wrong: str) -> None:
    # All parts of a statement have fixed lengths, so no two statements have the same bytes.
    try:
        verify(key, statement, signature)
    except RemoteError as error:
        raise LinkFailure(Reason.AUTH_FAILED, wrong) from error
