"""All limits of the kernel, with units and reasons. Nothing from peers is unbounded."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

LARGEST_COUNT = 2**63 - 1
"""The largest integer: SQLite keeps signed 64-bit ones, so nothing larger is accepted."""

BURST_EVENTS = 256
"""Events that one signature may cover: with more, checking signatures is no longer the bottleneck."""

BATCH_EVENTS = 16 * BURST_EVENTS
"""Events of one command: a few bursts, so that one caller does not block the loop for long."""

BURST_BYTES = 256 * KIB
"""Bytes of all tails of a burst, which a receiver must hold before it can check anything."""

EVENT_BYTES = BURST_BYTES
"""Bytes of one encoded event: it has to fit a burst of its own."""

BODY_BYTES = EVENT_BYTES - 4 * KIB
"""Bytes of an application's body; the rest of the event is for the other fields."""

FRAME_BYTES = 1 * MIB
"""Bytes of one frame: a burst, its card and a page of history fit with room to spare."""

DEPENDENCIES = 32
"""Causal references of each kind in one event."""

KIND_CHARS = 64
KEY_CHARS = 256
CLEAR_BYTES = 4 * KIB

NEIGHBORS = 64
"""Neighbours of one topic in one instruction or status: sixteen times the default degree."""

MEMBERS = 8
"""Members of a topic in one sample of a tracker: a node asks again when it needs more."""

STORAGE_NODES = 8
"""Storage nodes that a tracker names for one stream."""

CHAINS_PER_MESSAGE = 512
"""Chain heads in one announcement; further ones go into further messages."""

STREAM_NAME_CHARS = 200

PUBLISHERS = 1024
"""Publishers that an owner may list for one stream."""
