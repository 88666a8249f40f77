"""The labels of sealed places: each separates one use of a key or a hash from all others, of groups too."""

from __future__ import annotations

_PREFIX = b"linnet/sealed-place/1/"

PIECE = _PREFIX + b"piece"
"""Key and nonce of one fragment."""
STEP = _PREFIX + b"step"
"""The key of the next step of an epoch."""
BOX = _PREFIX + b"box"
"""Keys on their way from the voice to one device."""
PARTY = _PREFIX + b"party"
"""The voice's device, where a guest's prekeys note who used them."""

ALL = (PIECE, STEP, BOX, PARTY)
