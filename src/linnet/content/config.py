"""How content is brought together."""

from __future__ import annotations

from msgspec import Struct


class ContentConfig(Struct, frozen=True):
    """What the machine is told. All nodes of a network should be told the same."""

    reliable: bool = True
    """Whether events and subscriptions are acknowledged hop by hop and sent again until they are."""
    confirm: bool = True
    """Whether a node acts as rendezvous only after a full lookup found nobody closer."""
    claims: int = 8
    """Nodes that are told who acts as rendezvous: where two do, they learn of each other. 0: nobody is."""
    lately: float = 30.0
    """Seconds for which a rendezvous keeps events, in case that another one turns out to be closer."""
    attributes: int = 5
    """Attributes of a predicate or an event at most."""
    refresh: float = 900.0
    """Seconds after which subscriptions are told again; a filter that is not lives two to three of these."""
    resend: float = 2.0
    """Seconds until something without an answer is sent again; doubled each time."""
    tries: int = 5
    """How often something is sent to one peer before it counts as gone."""
    avoided: float = 60.0
    """Seconds for which a peer that did not answer is not chosen again."""
    confirmed: float = 300.0
    """Seconds for which the answer of a lookup is relied on."""
    filters: int = 4096
    """Filters of one route and attribute."""
    routes: int = 4096
    """Pairs of a route and an attribute in all."""
    waiting: int = 1024
    """Messages that wait for a link to one peer, and events that wait for one lookup."""
    remembered: int = 65_536
    """Events that are known again."""
    subscriptions: int = 4096
    """Subscriptions of the local application."""
