"""The secrets that a node keeps, found in its store, and the forms in which they could be written down."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from hashlib import sha512
from itertools import pairwise

import msgspec
from nacl.bindings import crypto_scalarmult_base

from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.delivery.config import DeliveryConfig
from linnet.identity.keys import SigningKey
from linnet.streams.sealed.vault import Vault, sealed_topics


def key_secrets(key: SigningKey) -> list[bytes]:
    """Of a signing key: its seed, and what it is expanded to (RFC 8032, section 5.1.5)."""
    expanded = sha512(key.seed).digest()
    return [key.seed, expanded[:32], expanded[32:]]


def sealed_secrets(cells: Cells) -> list[bytes]:
    """Of the sealed streams of a node: the keys of content, and the secret halves of all pairs."""
    found: list[bytes] = []
    for topic in sealed_topics(cells):
        vault = Vault(topic, cells, DeliveryConfig())
        for kept in (vault.owning, vault.reading):
            if kept is not None:
                found += [each.key for each in kept.keys]
                found += pair_secrets(msgspec.to_builtins(kept, builtin_types=(bytes,)))
    return found


def room_secrets(cells: Cells, room: TopicId) -> list[bytes]:
    """Of an encrypted room: secret halves of all pairs in the state of its group, keys of messages."""
    name = room.hex()
    found = [value for _, value in cells.scan(f"group.shared/{name}")]
    for _, value in cells.scan(f"group.state/{name}"):
        try:
            found += pair_secrets(msgspec.msgpack.decode(value))
        except msgspec.DecodeError:
            found.append(value)
    return [each for each in found if len(each) >= 16]


def pair_secrets(tree: object) -> Iterator[bytes]:
    """Whatever is the secret half of an X25519 pair, anywhere in what was kept."""
    if isinstance(tree, dict):
        tree = [*tree.keys(), *tree.values()]
    if not isinstance(tree, list | tuple):
        return
    for one, other in pairwise(tree):
        are_keys = isinstance(one, bytes) and isinstance(other, bytes) and len(one) == len(other) == 32
        if are_keys and crypto_scalarmult_base(one) == other:
            yield one
    for each in tree:
        yield from pair_secrets(each)


def forms(secret: bytes) -> list[bytes]:
    """Raw, hex, base32 and base64, as far as they do not depend on what stands behind."""
    texts = [base64.b32encode(secret), base64.b64encode(secret), base64.urlsafe_b64encode(secret)]
    bare = [text.rstrip(b"=")[:-1] for text in texts]
    return [secret, secret.hex().encode(), secret.hex().upper().encode(), *bare, bare[0].lower()]


def found_in(content: bytes, secrets: Iterable[bytes]) -> list[bytes]:
    """The secrets that are in there in any form."""
    return [secret for secret in secrets if any(form in content for form in forms(secret))]
