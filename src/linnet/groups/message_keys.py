"""Messages in a chain of events, each sealed with a key of its own that is made from a longer-lived secret.

There is no ratchet from message to message: a holder of the secret opens any message by itself. The key is
made from the place of the message in its chain, which no other message has, and from a random guard: should
an old state ever be restored, a number that is used again still meets another key.
"""

from __future__ import annotations

from typing import NamedTuple

from linnet.event.event import Event, Spot, Tail, bound, bound_of
from linnet.groups.labels import fields
from linnet.groups.primitives import KEY_BYTES, NONCE_BYTES, hkdf, open_sealed, seal


class MessageKey(NamedTuple):
    """The key and nonce that seal one message. Neither shows when it is printed."""

    key: bytes
    nonce: bytes

    def __repr__(self) -> str:
        return "MessageKey(…)"

    def seal(self, body: bytes, spot: Spot, tail: Tail) -> bytes:
        """Seal a body, bound to all other fields of its event."""
        return seal(self.key, self.nonce, body, bound(spot, tail))

    def open(self, body: bytes, event: Event) -> bytes:
        """Open the body of an event; `RemoteError` with ``undecryptable`` if it does not open."""
        return open_sealed(self.key, self.nonce, body, bound_of(event))


def derive_key(secret: bytes, label: bytes, *place: bytes) -> MessageKey:
    """Make the key of one message; the label names the use."""
    made = hkdf(b"", secret, fields(label, *place), KEY_BYTES + NONCE_BYTES)
    return MessageKey(made[:KEY_BYTES], made[KEY_BYTES:])
