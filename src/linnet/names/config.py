"""The parameters of names."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import Contact

DAY = 86_400.0
STORES = 8


class NamesLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """All of them have defaults that suit a person's own node and a record relay alike."""

    serve: bool = True
    """Whether records of others are stored and handed out."""
    lifetime: Annotated[float, Meta(ge=60.0, le=365 * DAY)] = 30 * DAY
    """Seconds that a record is valid, unless it is published with another lifetime."""
    republish: Annotated[float, Meta(ge=1.0, le=7 * DAY)] = 3600.0
    """Seconds between two times that our records are handed out again."""
    copies: Annotated[int, Meta(ge=1, le=64)] = 8
    """Peers that a record of ours is handed to."""
    asks: Annotated[int, Meta(ge=1, le=64)] = 8
    """Peers that are asked for one record, at once."""
    patience: Annotated[float, Meta(ge=0.05, le=60.0)] = 2.0
    """Seconds to wait for answers; those that came until then count."""
    depth: Annotated[int, Meta(ge=1, le=32)] = 8
    """Records that one address may lead through."""
    resolving: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Addresses that are looked up at once; more are refused."""
    own: Annotated[int, Meta(ge=1, le=100_000)] = 1024
    """Labels of our own zone, removed ones included until their records have expired everywhere."""
    petnames: Annotated[int, Meta(ge=1, le=100_000)] = 4096
    """People that are known by a name here."""
    records: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    """Records of others that are kept."""
    candidates: Annotated[int, Meta(ge=1, le=8)] = 8
    """Records that are kept under one lookup key: only a reader who can open them can tell which is right."""
    giver_records: Annotated[int, Meta(ge=1, le=10_000_000)] = 4096
    """Records that are kept for one peer."""
    giver_candidates: Annotated[int, Meta(ge=1, le=8)] = 2
    """Records under one lookup key that are kept for one peer."""
    grace: Annotated[float, Meta(ge=0.0, le=365 * DAY)] = 7 * DAY
    """Seconds that a record is kept past its end, so that a peer that asks learns that it has ended."""
    remembered: Annotated[int, Meta(ge=1, le=1_000_000)] = 4096
    """Records of others that were resolved and are remembered: offline, and against older ones."""
    rate: Annotated[float, Meta(ge=0.1)] = 16.0
    """Requests, and records, a second that one peer may send over time."""
    burst: Annotated[float, Meta(ge=1.0)] = 256.0
    """Requests, and records, that one peer may send at once."""


class NamesConfig(NamesLimits, frozen=True, forbid_unknown_fields=True):
    """The configuration of names."""

    stores: Annotated[tuple[Contact, ...], Meta(max_length=STORES)] = ()
    """Nodes that store our records while we are offline, and that are asked first: links to them are held."""
