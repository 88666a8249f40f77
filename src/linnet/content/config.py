"""How content is brought together, and how groups are served."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ContentConfig(Struct, frozen=True):
    """The settings of ScoutSubs and the inbox. All nodes of a network should have the same."""

    reliable: bool = True
    """Whether events and subscriptions are acknowledged hop by hop and sent again until they are."""
    redirect: bool = False
    """Whether events are sent past nodes that have but one route and want nothing themselves."""
    confirm: bool = True
    """Whether a node acts as rendezvous only after a full lookup found nobody closer."""
    backups: Annotated[int, Meta(ge=0, le=8)] = 2
    """Nodes that keep a node's filters in case it crashes: so many may crash at once. At most 8."""
    kept: Annotated[int, Meta(ge=0, le=10_000_000)] = 65_536
    """Filters that are kept for other nodes."""
    tracked: Annotated[int, Meta(ge=0, le=1_000_000)] = 4096
    """Events of other rendezvous that are tracked until they are finished."""
    claims: Annotated[int, Meta(ge=0, le=64)] = 8
    """Nodes that are told which node acts as rendezvous: where two do, they learn of each other. 0: none."""
    lately: float = 30.0
    """Seconds for which a rendezvous keeps events, in case another one turns out to be closer."""
    attributes: Annotated[int, Meta(ge=1, le=8)] = 5
    """Attributes of a predicate or an event, at most."""
    refresh: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 900.0
    """Seconds after which subscriptions are sent again; a filter that is not lives two to three of these."""
    resend: Annotated[float, Meta(ge=0.05, le=60.0)] = 2.0
    """Seconds until something without an answer is sent again; doubled each time."""
    tries: Annotated[int, Meta(ge=1, le=16)] = 5
    """How often something is sent to one peer before it counts as gone."""
    avoided: float = 60.0
    """Seconds for which a peer that did not answer is not chosen again."""
    confirmed: float = 300.0
    """Seconds for which the answer of a lookup is relied on."""
    filters: int = 4096
    """Filters of one route and attribute."""
    routes: int = 4096
    """Pairs of a route and an attribute in all."""
    held: int = 262_144
    """Filters of all routes and attributes."""
    expensive: int = 512
    """Filters of one route and attribute with two ranges or more, which an index cannot settle by itself."""
    budget: int = 16_384
    """Messages of each kind that a peer may send in a period: subscriptions, filters to keep, questions."""
    event_budget: int = 1_048_576
    """Events that a peer may send in a period; answers to events may be four times as many."""
    claim_budget: int = 1024
    """Claims to be a rendezvous, or messages about one, that a peer may send in a period."""
    hot: Annotated[float, Meta(ge=0.0, le=1_000_000.0)] = 100.0
    """Events in a second above which a rendezvous spreads an attribute's events over others; 0: never."""
    waiting: int = 1024
    """Messages that wait for a link to one peer, and events that wait for one lookup."""
    remembered: int = 65_536
    """Events that are remembered, so that a copy is recognised."""
    subscriptions: int = 4096
    """Subscriptions of the local application."""
    inbox: Annotated[int, Meta(ge=1, le=1_000_000)] = 4096
    """Matches of one subscription that wait to be read; further ones are not taken, and counted."""
    inbox_bytes: Annotated[int, Meta(ge=1_048_576)] = 64 * 1024 * 1024
    """The same, in bytes of bodies."""
    window: Annotated[int, Meta(ge=1, le=65_536)] = 256
    """Matches that a reader is handed before it has handled earlier ones."""

    @property
    def taken_for(self) -> float:
        """Seconds after which an event is too old to be taken: until then it is recognised.

        Longer than any node sends a past event again.
        """
        return 2 * self.refresh + self.lately


class FastConfig(Struct, frozen=True):
    """The settings of FastDelivery."""

    region: Annotated[str, Meta(max_length=64)] = ""
    """Where this node is, in any word that nodes near it use too: members are arranged by it."""
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
    """Seconds that a member that serves others has to gather their receipts."""
    doubts: int = 2
    """Members that did not get an event from the member that serves them before it is relieved."""
    distrust: float = 86_400.0
    """Seconds for which a relieved member is not asked again."""
    strikes: int = 3
    """Events in a row without an answer from a member after which its membership ends."""
    idle: float = 60.0
    """Seconds after which idle links are released."""
    groups: int = 64
    """Groups of this node."""
    members: int = 4096
    """Members of one group."""
    memberships: int = 1024
    """Groups that this node is a member of."""
    subscriptions: int = 1024
    """Subscriptions of the local application."""
    postings: int = 16_384
    """Advertisements on the boards of this node, in all."""
    board: int = 4096
    """Advertisements on the board of one attribute."""
    of_one: int = 64
    """Advertisements of one publisher on one board."""
    publications: int = 1024
    """Events of this node whose outcome is not yet final."""
    calls: int = 65_536
    """Requests that may be open at once for an event to be sent."""
    remembered: int = 65_536
    """Events that are remembered, so that a copy is recognised."""
    stale: float = 3600.0
    """Seconds after which an event is too old to be taken: remembered events are younger."""
