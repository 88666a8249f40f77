"""How groups are served."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class FastConfig(Struct, frozen=True):
    """What the machine is told."""

    region: Annotated[str, Meta(max_length=64)] = ""
    """Where this node is, in any word that others near it use too: members are arranged by it."""
    capacity: Annotated[int, Meta(ge=0, le=100_000)] = 10
    """Members of other publishers' groups that this node would serve in all; 0: none."""
    direct: int = 5
    """Members of a region that a publisher serves itself before it asks one of them for help."""
    pool: Annotated[int, Meta(ge=0, le=1024)] = 2
    """The strongest members of a region that are not handed on, so that one is there to be asked."""
    boards: int = 3
    """Nodes closest to an attribute at which a group is advertised, and which are all searched."""
    refresh: float = 900.0
    """Seconds after which memberships and advertisements are renewed; they last three of these."""
    resend: float = 2.0
    """Seconds until something without an answer is sent again; doubled each time."""
    tries: int = 5
    """How often something is sent to one peer before it counts as gone."""
    patience: float = 10.0
    """Seconds that a member who serves others has to gather their receipts."""
    doubts: int = 2
    """Members that one who serves them failed, though they were there, until it is relieved."""
    distrust: float = 86_400.0
    """Seconds for which one who was relieved is not asked again."""
    strikes: int = 3
    """Events in a row that a member does not answer for until its membership ends."""
    idle: float = 60.0
    """Seconds after which links that nothing goes over are let go."""
    groups: int = 64
    """Groups of this node."""
    members: int = 4096
    """Members of one group."""
    memberships: int = 1024
    """Groups that this node is a member of."""
    subscriptions: int = 1024
    """Subscriptions of the local application."""
    postings: int = 16_384
    """Advertisements on the boards of this node in all."""
    board: int = 4096
    """Advertisements on the board of one attribute."""
    of_one: int = 64
    """Advertisements of one publisher on one board."""
    publications: int = 1024
    """Events of this node of which it is not yet known what became of them."""
    calls: int = 65_536
    """Questions that may be open at once for an event to be sent."""
    remembered: int = 65_536
    """Events that are known again."""
    stale: float = 3600.0
    """Seconds after which an event is too old to be taken: those that are remembered are younger."""
