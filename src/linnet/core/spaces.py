"""The spaces of a store's cells, in words, and which of them a node can lose to a damaged disk.

Spaces are named by the parts that write them; those of one topic end in its id. A kind that is not listed is
described by its name, and counts as needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

STORE_NUMBER = ("keeping", b"store")
"""The cell with the number under which this node signs what it keeps."""
_TOPIC = re.compile(r"[ /][0-9a-f]{64}.*", re.DOTALL)

_TOLD = {
    "content_items": "matches that wait to be read",
    "group.text": "texts of encrypted rooms",
    "room.early": "events of rooms that wait for others",
}
"""Kinds whose readers handle damage: a subscriber is told of it, an event is requested again."""

EXPENDABLE = {
    "chunk": "pieces of attachments",
    "contacts": "addresses of members",
    "contradiction": "proofs against storage nodes",
    "dialed": "attempts to reach peers",
    "group.offered": "keys that members showed",
    "group.shared": "keys that newcomers may be shown",
    "kademlia": "contacts of the hash table",
    "kademlia kept": "records kept for others",
    "kept": "statements of storage nodes",
    "kept checked": "statements of storage nodes",
    "names kept": "records kept for others",
    "names seen": "names that were resolved",
    "piece": "pieces of attachments",
    "pieces": "pieces of attachments",
    "place contacts": "addresses of guests",
    "place receipt": "receipts of guests",
    "receipts": "receipts of members",
    "relay cursor": "places in what relays keep",
    "relay.chunk": "pieces of attachments",
    "room.called": "names of rooms",
    "rooms": "choices of relays",
    "trackerless rings": "neighbours on rings",
    "whereabouts": "addresses of peers",
}
"""Kinds that peers send again, or that only save time: damaged values are forgotten, and reported."""

_NEEDED = {
    "blocked": "blocked peers",
    "card": "cards of devices",
    "card spare": "cards of devices",
    "content_groups": "publisher groups",
    "content_kept": "kept subscriptions",
    "content_taken": "matches that were taken",
    "cursor": "places of subscriptions",
    "cursor.made": "places of subscriptions",
    "damaged": "notes about damaged units",
    "due": "places of subscriptions",
    "edge.ending": "what a proxy serves",
    "edge.served": "what a proxy serves",
    "edge.unsent": "streams that a proxy has to be told of",
    "evicted": "what retention removed",
    "group.bundle": "keys of encrypted rooms",
    "group.repaired": "messages that were read late",
    "group.state": "keys of encrypted rooms",
    "group.stuck": "keys of encrypted rooms",
    "group.unread": "messages that cannot be read yet",
    "group.used": "keys of encrypted rooms",
    "lan names": "rules for local networks",
    "lan policy": "rules for local networks",
    "keeping": "the number of the store",
    "late": "ends of chains",
    "ledger": "who has what was sent to rooms",
    "names own": "names of this zone",
    "names petname": "petnames",
    "passed": "ends of chains",
    "person.note": "known people",
    "place epoch": "keys of places",
    "place key": "keys of places",
    "place prekeys": "keys of places",
    "place reader": "keys of places",
    "place sealing": "keys of places",
    "policy": "who may publish",
    "privacy": "what peers were told",
    "revocation": "revoked devices",
    "room.open": "rooms",
    "sealed granted": "readers of sealed streams",
    "sealed owning": "keys of sealed streams",
    "sealed reading": "keys of sealed streams",
    "store": "the number of the store",
    "stream.overlay": "overlays of streams",
    "tip": "ends of chains",
    "trackerless": "keys and peers of the overlay",
    "trust": "trust in peers",
    "whereabouts own": "the address of this node",
    "whole": "ends of chains",
}
_WORDS = {**EXPENDABLE, **_TOLD, **_NEEDED}
_FAMILIES = {"place": "state of places", "relay": "state of relayed rooms", "room": "state of rooms"}
"""Descriptions by the first word of a kind, for kinds that are not listed."""


@lru_cache(4096)
def kind_of(space: str) -> str:
    """Return the kind of a space: its name without the topic."""
    return _TOPIC.sub("", space)


def is_expendable(space: str) -> bool:
    """Return whether a node can go on without a damaged value of this space."""
    return kind_of(space) in EXPENDABLE


def is_needed(space: str) -> bool:
    """Return whether a damaged value of this space stops a node, even if nothing reads it."""
    kind = kind_of(space)
    return kind not in EXPENDABLE and kind not in _TOLD


def words_for(space: str) -> str:
    """Describe for people what a space holds."""
    kind = kind_of(space)
    family = re.split(r"[ ./]", kind)[0]
    return _WORDS.get(kind) or _FAMILIES.get(family) or kind


def count_by_words(spaces: Iterable[str]) -> str:
    """Count values by the words for their spaces, the most frequent first."""
    counts = Counter(map(words_for, spaces))
    return ", ".join(f"{count} of {words}" for words, count in counts.most_common())
