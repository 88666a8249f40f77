"""What questions to peers are asked for."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import EventId, PeerId, TopicId


class Advertising(Struct, frozen=True, gc=False):
    """A group of ours is put on the board of an attribute at a node."""

    group: TopicId
    attribute: str
    at: PeerId


class Browsing(Struct, frozen=True, gc=False):
    """A board is searched, for a search of ours."""

    search: int
    at: PeerId


class Entering(Struct, frozen=True, gc=False):
    """A group of another is joined, or the membership renewed."""

    group: TopicId


class Leaving(Struct, frozen=True, gc=False):
    """A group is left or closed, and the other side told."""

    group: TopicId
    peer: PeerId


class Entrusting(Struct, frozen=True, gc=False):
    """A member of a group of ours is asked to serve others."""

    group: TopicId
    deputy: PeerId


class Publishing(Struct, frozen=True, gc=False):
    """An event of ours is brought to a member."""

    event: EventId
    member: PeerId


class Forwarding(Struct, frozen=True, gc=False):
    """An event of another is brought to a member whom we serve."""

    event: EventId
    member: PeerId


Task: TypeAlias = Advertising | Browsing | Entering | Leaving | Entrusting | Publishing | Forwarding
