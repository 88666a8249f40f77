"""The commands and answers of groups. Members are handed `Match`, as by ScoutSubs."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct, field

from linnet.content.commands import Ended, GroupAt, PredicateText
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Command


class OpenGroup(Command["GroupOpened"], frozen=True, gc=False):
    """Open a group: serve its members the events that a predicate accepts; kept over restarts."""

    predicate: PredicateText
    listed: bool = True
    """Whether it is advertised; otherwise only nodes that know this node and the predicate can join."""


class CloseGroup(Command[Ended], frozen=True, gc=False):
    """Close a group, and tell its members."""

    group: PredicateText = field(name="predicate")
    """The predicate that it was opened with."""


class SearchGroups(Command["GroupsFound"], frozen=True, gc=False):
    """Search for advertised groups of any publisher that carry all that a predicate accepts."""

    predicate: PredicateText
    """The predicate that they have to carry."""


class JoinGroups(Command["GroupsJoined"], frozen=True, gc=False):
    """Deliver the events that a predicate accepts, from groups.

    Without `via` all groups that carry it are searched for and joined, now and with every renewal."""

    subscription: int
    predicate: str
    via: GroupAt | None = None
    region: str | None = None
    """The region of this node; None: as configured."""
    capacity: int | None = None
    """Members that it offers to serve in each group; None: half of the capacity that is not yet promised."""


class LeaveGroups(Command[Ended], frozen=True, gc=False):
    """End a subscription, and leave the groups that no other subscription needs."""

    subscription: int


class PublishToGroup(Command["GroupOutcome"], frozen=True, gc=False):
    """Publish an event in a group of ours.

    The answer comes when all members that are alive have answered. Silent members are waited for `confirm`
    seconds; the outcome names those that stay silent, and the trace has what becomes of them later."""

    group: str
    """The predicate that it was opened with; it has to accept the attributes."""
    attributes: str
    body: bytes
    confirm: float = 0.0


class ExamineGroups(Command["GroupsStatus"], frozen=True, gc=False):
    """List the groups of ours, and the groups that this node is in."""


FastCommand: TypeAlias = (
    OpenGroup | CloseGroup | SearchGroups | JoinGroups | LeaveGroups | PublishToGroup | ExamineGroups
)


class GroupOpened(Struct, frozen=True, gc=False):
    """The group is open."""

    group: TopicId
    predicate: str


class Listing(Struct, frozen=True, gc=False):
    """A group, and its publisher."""

    group: TopicId
    publisher: Contact
    predicate: str
    author: AuthorId | None = field(name="person", default=None)
    """The person behind it, if an advertisement said so."""


class GroupsFound(Struct, frozen=True, gc=False):
    """The advertised groups that carry all of the predicate."""

    groups: tuple[Listing, ...]
    unanswered: int = 0
    """Boards that did not answer: there may be more groups."""


class NotJoined(Struct, frozen=True, gc=False):
    """A group that did not take us, and the reason."""

    listing: Listing
    reason: Reason


class GroupsJoined(Struct, frozen=True, gc=False):
    """The subscription is kept; some groups have taken it, and others have refused."""

    predicate: str
    joined: tuple[Listing, ...]
    refused: tuple[NotJoined, ...]
    unanswered: int = 0
    """Boards that did not answer."""


class Relieved(Struct, frozen=True, gc=False):
    """A member that was to serve others and does so no longer, with the reason.

    `forging`: it showed receipts that nobody gave; `lost`: members did not get the event from it; anything
    else: it was not there.
    """

    peer: PeerId
    reason: Reason


class GroupOutcome(Struct, frozen=True, gc=False):
    """The outcome of an event, proved by receipts that only the members can give."""

    event: EventId
    wanted: int
    """Members whose predicates accept it."""
    reached: int
    """Members that gave a receipt."""
    missed: tuple[PeerId, ...]
    """Members that gave no receipt, whatever was tried."""
    taken_back: int
    """Members that the publisher served directly after all, since their deputy did not."""
    relieved: tuple[Relieved, ...]
    silent: tuple[PeerId, ...] = ()
    """Members that have given no receipt yet, and still may; empty if the outcome is final."""


class GroupStatus(Struct, frozen=True, gc=False):
    """A group of this node."""

    group: TopicId
    predicate: str
    listed: bool
    boards: int
    """Boards on which it stands."""
    members: int
    direct: int
    """Members that this node serves itself."""
    deputies: tuple[tuple[PeerId, int, int], ...]
    """The deputies, members that serve others: each with the number it serves, and how many more it could."""


class MembershipStatus(Struct, frozen=True, gc=False):
    """A group that this node is a member of, or wants to be."""

    listing: Listing
    stands: bool
    promised: int
    """Members that this node offered to serve."""
    serves: int


class GroupsStatus(Struct, frozen=True, gc=False):
    """The state of groups at this node."""

    groups: tuple[GroupStatus, ...]
    memberships: tuple[MembershipStatus, ...]
    postings: int
    """Advertisements of others that this node keeps."""
