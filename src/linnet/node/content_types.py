"""What the control API is asked about content and what it answers."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from linnet.content.commands import Via
from linnet.content.inbox import NAME_BYTES
from linnet.content.predicate import TEXT_CHARS
from linnet.node.control_types import EndedView, HeartbeatView, Seconds, SubscribedView

PredicateText = Annotated[
    str, Meta(min_length=1, max_length=TEXT_CHARS, description="such as `stock/apple/price[10,20]`")
]
AttributesText = Annotated[
    str, Meta(min_length=1, max_length=TEXT_CHARS, description="such as `stock/apple/price=12.5`")
]
SubscriptionName = Annotated[str, Meta(min_length=1, max_length=NAME_BYTES)]


class ContentQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to be handed."""

    predicate: PredicateText
    """What the subscription accepts."""
    name: SubscriptionName | None = None
    """Keeps it: it goes on while nobody reads it, and over restarts."""
    via: Via = Via.SCOUT
    """By rendezvous from anybody, from groups that publishers serve, or both."""
    at: str | None = None
    """The address of a publisher whose group to be in, also if it is not advertised; not by `scout`."""
    group: PredicateText | None = None
    """The predicate of that group; without it, the one of the subscription."""
    ack: Literal["auto", "manual"] = "auto"
    """`manual`: what was handled is told by `consumed`; what was not comes again after a restart."""


class ContentPublishRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to say: a text, or a body in base64, or neither."""

    attributes: AttributesText
    """What the event says of itself."""
    text: str | None = None
    body: bytes | None = None
    via: Via = Via.SCOUT
    """By rendezvous, in a group of ours that carries it, or by `auto` in the group if there is one."""
    confirm: Seconds = 0.0
    """Wait so long for those who say nothing."""


class ForgetRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A kept subscription to end."""

    name: SubscriptionName


class FateView(Struct, frozen=True):
    """What became of an event at the rendezvous of one attribute."""

    attribute: str
    delivered: int
    """Nodes where an application was handed it from here; each node counts at one rendezvous."""
    missed: int
    """Branches that did not answer, and are given up."""
    reason: str | None
    """Why it did not get there, if so."""
    again: int = 0
    """Nodes that want it from here too, and are counted at another rendezvous."""
    matches: int = 0
    """Subscriptions that were handed it; a node may have several."""
    settled: bool = True
    """Whether this is the end of it; otherwise those who are silent may still answer."""
    silent: tuple[str, ...] = ()
    """Nodes that have not answered so far, for themselves or for those below them."""
    more_silent: int = 0
    """How many there are beside those."""


class ContentPublishReply(Struct, frozen=True):
    """What became of an event."""

    event: str
    delivered: int
    """Nodes where an application was handed it, each once whatever its subscriptions."""
    missed: int
    """Branches, or members of the group, that did not answer and are given up."""
    fates: tuple[FateView, ...]
    """At each rendezvous; none if the network does not acknowledge."""
    group: str | None = None
    """The predicate of the group of ours in which it was said; `delivered` counts receipts then."""
    wanted: int | None = None
    """Members of the group who want it."""
    taken_back: int = 0
    """Members that were served directly after all, since who was to serve them did not."""
    matches: int | None = None
    """Subscriptions that were handed it; not known in a group."""
    settled: bool = True
    """Whether this is the end of it; otherwise those who are silent may still answer."""
    silent: tuple[str, ...] = ()
    """Nodes that have not answered so far."""
    more_silent: int = 0
    """How many there are beside those."""


class GroupRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A group to open."""

    predicate: PredicateText
    """Of which events it consists."""
    listed: bool = True
    """Whether it is advertised; otherwise whoever knows this node and the predicate may join."""


class CloseGroupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A group of ours to close."""

    predicate: PredicateText


class GroupsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which groups to look for."""

    predicate: PredicateText
    """They carry all that it accepts."""


class ListingView(Struct, frozen=True):
    """A group, and whose it is."""

    group: str
    predicate: str
    publisher: str
    """Where its publisher is dialled."""
    person: str | None
    """The person behind it, if an advertisement says so."""


class GroupsFoundReply(Struct, frozen=True):
    """Groups that were advertised."""

    groups: tuple[ListingView, ...]
    unanswered: int
    """Boards that were asked and said nothing: there may be more groups."""


class OwnGroupView(Struct, frozen=True):
    """A group of ours."""

    group: str
    predicate: str
    listed: bool
    boards: int
    """Boards on which it stands."""
    members: int
    direct: int
    """Members that this node serves itself; others are served by members."""


class MembershipView(Struct, frozen=True):
    """A group that this node is in, or wants to be."""

    listing: ListingView
    stands: bool
    promised: int
    """Members that this node said it would serve."""
    serves: int


class GroupsReply(Struct, frozen=True):
    """How groups stand at this node."""

    groups: tuple[OwnGroupView, ...]
    memberships: tuple[MembershipView, ...]
    postings: int
    """Advertisements of others that it keeps."""


class SubscriptionView(Struct, frozen=True):
    """A subscription of this node."""

    name: str | None
    """None: it ends with its reader."""
    predicate: str
    attribute: str
    """The attribute to whose rendezvous it goes."""
    read: bool
    """Whether somebody reads it now."""
    waiting: int
    """Matches that were not handled yet."""
    lost: int
    """Matches that were not taken, since too many waited."""
    via: Via = Via.SCOUT
    at: str | None = None
    """The publisher whose group it is in, if one was named."""
    groups: int | None = None
    """Groups that have taken it; none said: it is not for groups."""


class ContentReply(Struct, frozen=True):
    """How content stands at this node."""

    subscriptions: tuple[SubscriptionView, ...]
    rendezvous: tuple[str, ...]
    """Attributes of which this node is the rendezvous."""
    routes: int
    """Pairs of a neighbour and an attribute for which it carries filters."""
    settled: bool
    """Whether all subscriptions stand and all events have arrived, as far as it knows."""


class MatchView(Struct, frozen=True, tag="match"):
    """An event that the subscription accepts."""

    number: int
    """Counts what this subscription was handed; after a crash an event has the same number again."""
    event: str
    author: str
    attributes: str
    time: float
    hops: int
    body: bytes
    text: str | None
    """The body, if it is UTF-8."""


class OverflowView(Struct, frozen=True, tag="overflow"):
    """So many matches were not taken, since too many waited to be read."""

    number: int
    count: int
    reason: str


class InGroupsView(Struct, frozen=True, tag="in_groups"):
    """In how many groups a subscription by `fast` or `auto` is; not counted among what is consumed."""

    joined: int
    """Groups that have taken it."""
    refused: int
    """Groups that have not."""
    unanswered: int
    """Boards that were asked and said nothing: there may be more groups."""
    look_again: float
    """Seconds after which they are looked for again."""


ContentItemView: TypeAlias = (
    MatchView | OverflowView | EndedView | SubscribedView | HeartbeatView | InGroupsView
)
