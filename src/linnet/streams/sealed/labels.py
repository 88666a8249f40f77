"""The labels of sealed streams: each separates one use of a key or a hash from all others, of groups too."""

from __future__ import annotations

_PREFIX = b"linnet/sealed-stream/1/"

MESSAGE = _PREFIX + b"message"
"""Key and nonce of one message."""
EPOCH_KEY = _PREFIX + b"epoch-key"
"""An epoch's key on its way from the owner to one reader."""
PARTY = _PREFIX + b"party"
"""The owner's device, where a reader notes who used its prekeys."""
REQUEST = _PREFIX + b"request"
"""What a device signs that asks to read."""

ALL = (MESSAGE, EPOCH_KEY, PARTY, REQUEST)
