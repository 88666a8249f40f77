"""What is said on a fresh connection: who the client is, then `Hello` both ways.

::

    client                                   server
      |  ---- TLS 1.3, server certificate ---> |   the client compares the key with the one it dialled
      |  <---------- Challenge(nonce) -------- |
      |  Proof(own key, signature), Hello ---> |   the server checks the signature
      |  <------- Hello, or Bye(reason) ------ |   the link is up

The signature covers a tag, the server's key, the client's key and the server's nonce. It is good
for this server only, so nobody in the middle can pass it on; and for this connection only.
See docs/adr/0004-link-authentication.md.
"""

from __future__ import annotations

import secrets
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.hello import Hello
from linnet.core.ids import PeerId, WirePeerId, WireSignature
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, verify
from linnet.net.channel import Channel
from linnet.net.failure import LinkFailure
from linnet.net.tls import server_key
from linnet.peer.messages import CODEC, FIRST_CODEC, Bye
from linnet.wire.codec import Codec
from linnet.wire.frame import frame

GREETING_BYTES = 16 * KIB
"""Bytes of a frame of the greeting; the longest possible `Hello` has less than half."""

M = TypeVar("M")
NONCE_BYTES = 32
_TAG = b"linnet/link/1"


class Challenge(Struct, frozen=True, array_like=True, tag=100, gc=False):
    """The server's question: sign this."""

    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class Proof(Struct, frozen=True, array_like=True, tag=101, gc=False):
    """The client's answer: this is my key, and here is the proof."""

    key: WirePeerId
    sig: WireSignature


class Guest(Struct, frozen=True):
    """A client that has proved its key and said `Hello`."""

    peer: PeerId
    hello: Hello


CHALLENGE: Codec[Challenge] = Codec(Challenge)
_PROOF: Codec[Proof] = Codec(Proof)
_ANSWER: Codec[Hello | Bye] = Codec(Hello | Bye)


def prove(key: SigningKey, server: PeerId, nonce: bytes) -> Proof:
    """The answer of this client to this server's nonce."""
    signature = key.sign(_statement(server, key.public, nonce))
    return Proof(PeerId(key.public), signature)


def check_server(channel: Channel, dialled: PeerId) -> None:
    """Raise `LinkFailure` with ``wrong_key`` unless this is the peer that we dialled."""
    found = server_key(channel.tls.getpeercert(True))
    if found != dialled:
        raise LinkFailure(Reason.WRONG_KEY, "another device answers at this address")


async def authenticate(channel: Channel, key: SigningKey, server: PeerId, hello: Hello) -> None:
    """Prove to the server who we are, and say `Hello`. Its key must have been checked."""
    await channel.opened()
    challenge = await read(channel, CHALLENGE)
    proof = prove(key, server, challenge.nonce)
    channel.write(frame(_PROOF.encode(proof)) + frame(FIRST_CODEC.encode(hello)))


async def await_hello(channel: Channel, ours: Hello) -> Hello:
    """The server's `Hello`, which makes the link; `LinkFailure` with its reason if it refuses."""
    answer = await read(channel, _ANSWER)
    if isinstance(answer, Bye):
        raise LinkFailure(answer.reason, "the peer refused the link")
    if not ours.speaks(answer):
        refuse(channel, Reason.VERSION_MISMATCH)
        raise LinkFailure(Reason.VERSION_MISMATCH, versions(ours, answer))
    return answer


async def receive_guest(channel: Channel, key: SigningKey, ours: Hello) -> Guest:
    """Make a stranger prove its key and hear its `Hello`. Ours is still to be said.

    A stranger that fails is told why before `LinkFailure` is raised.
    """
    await channel.opened()
    nonce = secrets.token_bytes(NONCE_BYTES)
    channel.write(frame(CHALLENGE.encode(Challenge(nonce))))
    try:
        proof = await read(channel, _PROOF)
        _check_proof(proof, PeerId(key.public), nonce)
        hello = await read(channel, FIRST_CODEC)
        if not ours.speaks(hello):
            raise LinkFailure(Reason.VERSION_MISMATCH, versions(ours, hello))
    except LinkFailure as failure:
        refuse(channel, failure.reason)
        raise
    return Guest(proof.key, hello)


def say_hello(channel: Channel, hello: Hello) -> None:
    """The server's last word of the greeting: the link is up."""
    channel.write(frame(FIRST_CODEC.encode(hello)))


def refuse(channel: Channel, reason: Reason) -> None:
    """Say why there will be no link, and close."""
    if channel.is_open:
        channel.write(frame(CODEC.encode(Bye(reason))))
        channel.close(reason)


def _check_proof(proof: Proof, server: PeerId, nonce: bytes) -> None:
    if proof.key == server:
        raise LinkFailure(Reason.AUTH_FAILED, "the client claims our own key")
    try:
        verify(proof.key, _statement(server, proof.key, nonce), proof.sig)
    except RemoteError as error:
        raise LinkFailure(Reason.AUTH_FAILED, "the client's proof does not fit its key") from error


def _statement(server: bytes, client: bytes, nonce: bytes) -> bytes:
    # All parts have fixed lengths, so no two statements have the same bytes.
    return _TAG + server + client + nonce


async def read(channel: Channel, codec: Codec[M]) -> M:
    """The next frame of a greeting; `LinkFailure` if it is nothing that this codec reads."""
    payload = await channel.read_frame(GREETING_BYTES)
    try:
        return codec.decode(payload)
    except MalformedMessage as error:
        raise LinkFailure(Reason.PROTOCOL_ERROR, error.detail) from error


def versions(ours: Hello, theirs: Hello) -> str:
    """Why two nodes that speak no common version do not understand each other, for people."""
    return (
        f"the peer speaks wire versions {theirs.oldest} to {theirs.newest}, "
        f"we speak {ours.oldest} to {ours.newest}"
    )
