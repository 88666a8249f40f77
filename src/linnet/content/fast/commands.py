"""What the application asks of groups, and what is answered. Members are handed `Match`, as by ScoutSubs."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.content.commands import Ended, GroupAt
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason


class OpenGroup(Struct, frozen=True, gc=False):
    """Serve those who want events of this predicate. Answered by `GroupOpened` or `Declined`."""

    predicate: str
    listed: bool = True
    """Whether it is advertised; otherwise whoever knows this node and the predicate may join."""


class CloseGroup(Struct, frozen=True, gc=False):
    """Serve it no longer, and tell its members. Answered by `Ended` or `Declined`."""

    group: str
    """The predicate that it was opened with."""


class SearchGroups(Struct, frozen=True, gc=False):
    """Which groups carry all that this predicate accepts? Answered by `GroupsFound` or `Declined`."""

    predicate: str


class JoinGroups(Struct, frozen=True, gc=False):
    """Hand over what this predicate accepts, from groups. Answered by `GroupsJoined` or `Declined`.

    Without `via` all groups that carry it are searched for and joined, now and with every renewal.
    """

    subscription: int
    predicate: str
    via: GroupAt | None = None
    region: str | None = None
    """Where this node is; None: as configured."""
    capacity: int | None = None
    """Members that it would serve in each group; None: half of what is not yet promised."""


class LeaveGroups(Struct, frozen=True, gc=False):
    """No more of it; groups that nothing else is wanted of are left. Answered by `Ended` or `Declined`."""

    subscription: int


class PublishToGroup(Struct, frozen=True, gc=False):
    """Say this in a group of ours. Answered by `GroupOutcome` or `Declined`.

    That is when all members who live have answered. Those who say nothing are waited for `confirm` seconds;
    they are named if that was in vain, and what comes of it later is in the trace.
    """

    group: str
    """The predicate that it was opened with; it has to accept the attributes."""
    attributes: str
    body: bytes
    confirm: float = 0.0


class ExamineGroups(Struct, frozen=True, gc=False):
    """How do groups stand at this node? Answered by `GroupsStatus`."""


FastCommand: TypeAlias = (
    OpenGroup | CloseGroup | SearchGroups | JoinGroups | LeaveGroups | PublishToGroup | ExamineGroups
)


class GroupOpened(Struct, frozen=True, gc=False):
    """The group is there."""

    group: TopicId
    predicate: str


class Listing(Struct, frozen=True, gc=False):
    """A group, and whose it is."""

    group: TopicId
    publisher: Contact
    predicate: str
    author: AuthorId | None = None
    """The person behind it, if an advertisement said so."""


class GroupsFound(Struct, frozen=True, gc=False):
    """Groups that were advertised and carry what was asked for."""

    groups: tuple[Listing, ...]
    unanswered: int = 0
    """Boards that were asked and said nothing: there may be more groups."""


class NotJoined(Struct, frozen=True, gc=False):
    """A group that did not take us, and why."""

    listing: Listing
    reason: Reason


class GroupsJoined(Struct, frozen=True, gc=False):
    """The subscription is kept; these groups have taken it, and those have not."""

    predicate: str
    joined: tuple[Listing, ...]
    refused: tuple[NotJoined, ...]
    unanswered: int = 0
    """Boards that were asked and said nothing."""


class Relieved(Struct, frozen=True, gc=False):
    """A member that was to serve others, does so no longer, and why.

    `forging`: it showed receipts that nobody gave; `lost`: members did not get the event from it;
    anything else: it was not there.
    """

    peer: PeerId
    reason: Reason


class GroupOutcome(Struct, frozen=True, gc=False):
    """What became of an event, by receipts that nobody but the members can give."""

    event: EventId
    wanted: int
    """Members whose predicates accept it."""
    reached: int
    """Members that gave a receipt."""
    missed: tuple[PeerId, ...]
    """Members that gave none, whatever was tried."""
    taken_back: int
    """Members that were served directly after all, since who was to serve them did not."""
    relieved: tuple[Relieved, ...]
    silent: tuple[PeerId, ...] = ()
    """Members that have given none yet, and may still; empty if all is known."""


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
    """Members that serve others: who, how many now, how many more they could."""


class MembershipStatus(Struct, frozen=True, gc=False):
    """A group that this node is, or wants to be, a member of."""

    listing: Listing
    stands: bool
    promised: int
    """Members that this node said it would serve."""
    serves: int


class GroupsStatus(Struct, frozen=True, gc=False):
    """How groups stand at this node."""

    groups: tuple[GroupStatus, ...]
    memberships: tuple[MembershipStatus, ...]
    postings: int
    """Advertisements of others that it keeps."""


FastResult: TypeAlias = GroupOpened | GroupsFound | GroupsJoined | GroupOutcome | GroupsStatus | Ended
