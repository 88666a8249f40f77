"""What is said on a connection of a local network: who both are behind the keys that they announce.

::

    client                                        server
      |  ----- TLS 1.3, certificate of its lan key ----> |   the client asked for it by name
      |  <------------- Challenge(nonce) --------------- |
      |  Introduction(both own keys, nonce, two sigs) -> |   the server knows the client
      |  <---- Presented(device key, signature) -------- |   the client knows the server
      |  Hello, or Bye if there is a link already -----> |
      |  <--------------- Hello ------------------------ |   the link is up

Whoever only listens sees the lan keys, which last for one network and day; the device keys travel
encrypted. Whoever takes part learns them: a link is to a device, here as elsewhere. Each
signature covers a tag, both lan keys, both nonces and both device keys, as far as they are
known: it is good for these two and this connection only.
"""

from __future__ import annotations

import secrets
from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.errors import RemoteError
from linnet.core.hello import Hello
from linnet.core.ids import PeerId, WirePeerId, WireSignature
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, verify
from linnet.net.channel import Channel
from linnet.net.failure import LinkFailure
from linnet.net.greeting import CHALLENGE, NONCE_BYTES, Challenge, read, refuse, versions
from linnet.peer.messages import FIRST_CODEC, Bye
from linnet.wire.codec import Codec
from linnet.wire.frame import frame

_CLIENT = b"linnet/lan/client/1"
_CLIENT_LAN = b"linnet/lan/client-lan/1"
_SERVER = b"linnet/lan/server/1"


class Introduction(Struct, frozen=True, array_like=True, tag=102, gc=False):
    """The client's answer: these are my keys, and here are the proofs."""

    key: WirePeerId
    lan: WirePeerId
    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    sig: WireSignature
    lan_sig: WireSignature


class Presented(Struct, frozen=True, array_like=True, tag=103, gc=False):
    """The server's device key, and its proof."""

    key: WirePeerId
    sig: WireSignature


class LocalGuest(Struct, frozen=True):
    """A client on a local network that has proved its keys, and has been told ours."""

    peer: PeerId
    lan: bytes
    """The key that it announces there."""


_INTRODUCTION: Codec[Introduction] = Codec(Introduction)
_PRESENTED: Codec[Presented | Bye] = Codec(Presented | Bye)
_NEXT: Codec[Hello | Bye] = Codec(Hello | Bye)


async def introduce(channel: Channel, device: SigningKey, own: SigningKey) -> PeerId:
    """Prove our keys to the server whose lan key was dialled; return its device key, proved."""
    await channel.opened()
    challenge = await read(channel, CHALLENGE)
    nonce = secrets.token_bytes(NONCE_BYTES)
    known = channel.lan + own.public + challenge.nonce + nonce + device.public
    told = Introduction(
        PeerId(device.public),
        PeerId(own.public),
        nonce,
        device.sign(_CLIENT + known),
        own.sign(_CLIENT_LAN + known),
    )
    channel.write(frame(_INTRODUCTION.encode(told)))
    answer = await read(channel, _PRESENTED)
    if isinstance(answer, Bye):
        raise LinkFailure(answer.reason, "the peer refused to be met")
    if answer.key == device.public:
        raise LinkFailure(Reason.WRONG_KEY, "this is our own key")
    _check(answer.key, _SERVER + known + answer.key, answer.sig, "the server's proof does not fit its key")
    return answer.key


def say_client_hello(channel: Channel, hello: Hello) -> None:
    """Let the connection become a link."""
    channel.write(frame(FIRST_CODEC.encode(hello)))


async def receive_local_guest(channel: Channel, device: SigningKey, own: SigningKey) -> LocalGuest:
    """Make a stranger prove its keys, and prove ours to it. It may go on to be a link.

    One that fails is told why before `LinkFailure` is raised.
    """
    await channel.opened()
    nonce = secrets.token_bytes(NONCE_BYTES)
    channel.write(frame(CHALLENGE.encode(Challenge(nonce))))
    try:
        told = await read(channel, _INTRODUCTION)
        if device.public == told.key or own.public == told.lan:
            raise LinkFailure(Reason.AUTH_FAILED, "the client claims a key of ours")
        known = own.public + told.lan + nonce + told.nonce + told.key
        _check(told.key, _CLIENT + known, told.sig, "the client's proof does not fit its key")
        _check(told.lan, _CLIENT_LAN + known, told.lan_sig, "the client's proof does not fit its lan key")
    except LinkFailure as failure:
        refuse(channel, failure.reason)
        raise
    proof = Presented(PeerId(device.public), device.sign(_SERVER + known + device.public))
    channel.write(frame(_PRESENTED.encode(proof)))
    return LocalGuest(told.key, told.lan)


async def await_client_hello(channel: Channel, ours: Hello) -> Hello:
    """The client's `Hello`, if it wants a link; `LinkFailure` with its reason if it does not."""
    try:
        said = await read(channel, _NEXT)
        if isinstance(said, Bye):
            raise LinkFailure(Reason.REMOTE_CLOSED, f"the client wants no link: {said.reason}")
        if not ours.speaks(said):
            raise LinkFailure(Reason.VERSION_MISMATCH, versions(ours, said))
    except LinkFailure as failure:
        refuse(channel, failure.reason)
        raise
    return said


def _check(key: bytes, statement: bytes, signature: bytes, wrong: str) -> None:
    # All parts of a statement have fixed lengths, so no two statements have the same bytes.
    try:
        verify(key, statement, signature)
    except RemoteError as error:
        raise LinkFailure(Reason.AUTH_FAILED, wrong) from error
