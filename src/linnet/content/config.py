"""How content is brought together."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ContentConfig(Struct, frozen=True):
    """What the machine is told. All nodes of a network should be told the same."""

    reliable: bool = True
    """Whether events and subscriptions are acknowledged hop by hop and sent again until they are."""
    redirect: bool = False
    """Whether events are sent past nodes that have but one route and want nothing themselves."""
    confirm: bool = True
    """Whether a node acts as rendezvous only after a full lookup found nobody closer."""
    backups: Annotated[int, Meta(ge=0, le=8)] = 2
    """Nodes that keep a node's filters in case that it crashes: so many may crash at once. At most 8."""
    kept: Annotated[int, Meta(ge=0, le=10_000_000)] = 65_536
    """Filters that are kept for other nodes."""
    tracked: Annotated[int, Meta(ge=0, le=1_000_000)] = 4096
    """Events of other rendezvous that are tracked until they are finished."""
    claims: Annotated[int, Meta(ge=0, le=64)] = 8
    """Nodes that are told who acts as rendezvous: where two do, they learn of each other. 0: nobody is."""
    lately: float = 30.0
    """Seconds for which a rendezvous keeps events, in case that another one turns out to be closer."""
    attributes: Annotated[int, Meta(ge=1, le=8)] = 5
    """Attributes of a predicate or an event at most."""
    refresh: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 900.0
    """Seconds after which subscriptions are told again; a filter that is not lives two to three of these."""
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
    """Claims to be, or words about, a rendezvous that a peer may send in a period."""
    hot: Annotated[float, Meta(ge=0.0, le=1_000_000.0)] = 100.0
    """Events in a second above which a rendezvous spreads those of an attribute over others; 0: never."""
    waiting: int = 1024
    """Messages that wait for a link to one peer, and events that wait for one lookup."""
    remembered: int = 65_536
    """Events that are known again."""
    subscriptions: int = 4096
    """Subscriptions of the local application."""
    inbox: Annotated[int, Meta(ge=1, le=1_000_000)] = 4096
    """Matches of one subscription that wait to be read; what comes then is not taken, and counted."""
    inbox_bytes: Annotated[int, Meta(ge=1_048_576)] = 64 * 1024 * 1024
    """The same in bytes of bodies."""
    window: Annotated[int, Meta(ge=1, le=65_536)] = 256
    """Matches that a reader is handed ahead of what it has handled."""

    @property
    def taken_for(self) -> float:
        """Seconds after which an event is too old to be taken: for so long it is known again.

        Longer than anybody sends again what went by.
        """
        return 2 * self.refresh + self.lately
