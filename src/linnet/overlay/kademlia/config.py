"""The parameters of Kademlia. All nodes of a network should have the same k."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

MOST_K = 20
"""Contacts in one answer."""


class KademliaConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of Kademlia. The defaults are those of the paper and of IPFS where they name one."""

    k: Annotated[int, Meta(ge=1, le=MOST_K)] = 20
    """Contacts in a bucket, nodes that keep a record, and contacts in an answer."""
    alpha: Annotated[int, Meta(ge=1, le=16)] = 3
    """Questions of one lookup that are open at once."""
    replacements: Annotated[int, Meta(ge=0, le=64)] = 20
    """Contacts that wait for a place in a full bucket."""
    failures: Annotated[int, Meta(ge=1, le=16)] = 3
    """Unanswered questions after which a contact is dropped though none waits for its place."""
    patience: Annotated[float, Meta(ge=0.05, le=60.0)] = 4.0
    """Seconds to wait for an answer, a dial included."""
    rejoin: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 30.0
    """Seconds after which a node that has met no others asks its bootstrap nodes again."""
    refresh: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 3600.0
    """Seconds after which a bucket that no lookup went through is refreshed."""
    republish: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 3600.0
    """Seconds between placing our own records again: nodes come and go."""
    lookups: Annotated[int, Meta(ge=1, le=1024)] = 64
    """Lookups at once; more are refused."""
    asked: Annotated[int, Meta(ge=1, le=1024)] = 128
    """Nodes that one lookup asks at most."""
    enough: Annotated[int, Meta(ge=1, le=MOST_K)] = 4
    """Nodes with records after which a search for records ends: a single one may have an old or a false
    record."""
    bucket_prefix: Annotated[int, Meta(ge=1, le=MOST_K)] = 2
    """Contacts of one address prefix in one bucket."""
    table_prefix: Annotated[int, Meta(ge=1, le=256)] = 10
    """Contacts of one address prefix in all buckets."""
    own: Annotated[int, Meta(ge=1, le=100_000)] = 4096
    """Records of our own that are placed again and again."""
    records: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    """Records of others that this node keeps."""
    candidates: Annotated[int, Meta(ge=1, le=8)] = 8
    """Records under one key that this node keeps, each of another owner."""
    giver_records: Annotated[int, Meta(ge=1, le=10_000_000)] = 4096
    """Records that this node keeps for one peer."""
    lifetime: Annotated[float, Meta(ge=60.0, le=365 * 86_400.0)] = 86_400.0
    """Seconds for which a record is kept at most after it was last handed over, whatever expiry it states."""
    rate: Annotated[float, Meta(ge=0.1)] = 32.0
    """Questions and records a second that one peer may send on average."""
    burst: Annotated[float, Meta(ge=1.0)] = 512.0
    """Questions and records that one peer may send at once."""
