"""Searches for groups: for the application, and again and again for its subscriptions.

All nodes that should have the board of one attribute are asked, and what they say is checked. A group that
carries a predicate has all of its attributes, so it stands on the board of any one of them. Several nodes
have that board: one that is gone, hides groups or disagrees about who is closest does no harm.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.content.attribute_keys import Locate, Located, attribute_key, nearest_name
from linnet.content.commands import GroupAt
from linnet.content.fast.advertisements import Boards, closest
from linnet.content.fast.commands import GroupsFound, JoinGroups, Listing
from linnet.content.fast.group_requests import Browsing, FastStation
from linnet.content.fast.memberships import Memberships, Wish
from linnet.content.fast.messages import REGION_CHARS, Browse, Browsed, Posting
from linnet.content.fast.publisher import Publisher
from linnet.content.fast.signed_records import check_posting, group_id
from linnet.content.predicate import Predicate, read_predicate
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.trace.records import Kind, Record

_PAGES = 128
"""Pages that are read of one board, at most: four thousand groups."""


class _Search(Struct, eq=False):
    """One search."""

    predicate: Predicate
    attribute: str
    found: dict[TopicId, Listing] = {}
    issued: dict[TopicId, int] = {}
    open: dict[PeerId, Contact] = {}
    spare: list[Contact] = []
    pages: dict[PeerId, int] = {}
    unanswered: int = 0


class Searches:
    """The searches of this node. Finished ones are in `ended`, until the caller takes them."""

    def __init__(self, station: FastStation, boards: Boards) -> None:
        self._out = station.out
        self._context = station.context
        self._config = station.config
        self._attributes = station.content.attributes
        self._requests = station.requests
        self._boards = boards
        self._searches: dict[int, _Search] = {}
        self._located: dict[NodeId, list[int]] = {}
        self._next = 0
        self.ended: list[tuple[int, tuple[Listing, ...], int]] = []
        """Finished searches: number, groups found, and how many boards did not answer."""

    def __len__(self) -> int:
        return len(self._searches)

    def begin(self, predicate: Predicate) -> int:
        """Search for groups that carry all of a predicate; return the number of the search."""
        self._next += 1
        attribute = nearest_name(self._context.peer, predicate.names)
        self._searches[self._next] = _Search(predicate, attribute)
        key = attribute_key(attribute)
        waiting = self._located.setdefault(key, [])
        waiting.append(self._next)
        if len(waiting) == 1:
            self._out.notify(Locate(key))
        return self._next

    def handle_nodes_found(self, found: Located, now: float) -> None:
        """Ask the closest nodes that a lookup found."""
        for number in self._located.pop(found.key, ()):
            search = self._searches[number]
            nodes = closest(self._context.peer, found)
            search.spare = nodes[self._config.boards :]
            for contact in nodes[: self._config.boards]:
                self._browse(number, search, contact, b"", now)
            self._end_if_all(number, search)

    def _browse(self, number: int, search: _Search, contact: Contact, after: bytes, now: float) -> None:
        if contact.peer == self._context.peer:
            more = True
            while more:
                postings, more = self._boards.page(search.attribute, search.predicate, after, now)
                for posting in postings:
                    self._learn(search, posting)
                    after = group_id(posting.publisher.peer, posting.predicate)
            return
        search.open[contact.peer] = contact
        message = Browse(self._requests.next_number(), search.attribute, search.predicate.text, after)
        self._requests.ask_peer(contact, message, Browsing(number, contact.peer), hasty=True)

    def handle_answer(self, task: Browsing, answer: Browsed, now: float) -> None:
        """Check the advertisements on one page of a board, and ask for the next page."""
        search = self._searches.get(task.search)
        if search is None:
            return
        contact = search.open.pop(task.at)
        if answer.reason is not None:
            self.handle_failure(task, answer.reason, now)
            return
        last = b""
        for posting in answer.postings:
            try:
                self._check(search, posting, now)
            except RemoteError as error:
                note = f"an advertisement: {error.detail}"
                self._out.record(Record(Kind.REJECTED, peer=task.at, reason=error.reason, note=note))
            last = max(last, group_id(posting.publisher.peer, posting.predicate))
        pages = search.pages[task.at] = search.pages.get(task.at, 0) + 1
        if answer.more and answer.postings and pages < _PAGES:
            self._browse(task.search, search, contact, last, now)
        self._end_if_all(task.search, search)

    def _check(self, search: _Search, posting: Posting, now: float) -> None:
        group = group_id(posting.publisher.peer, posting.predicate)
        if search.issued.get(group, -1) >= posting.issued:
            return
        longest = 3 * self._config.refresh
        predicate = check_posting(posting, self._context, self._attributes, longest, now)
        if not search.predicate.served_by(predicate):
            raise RemoteError(Reason.MALFORMED, "not what was asked for")
        self._learn(search, posting)

    def _learn(self, search: _Search, posting: Posting) -> None:
        group = group_id(posting.publisher.peer, posting.predicate)
        if search.issued.get(group, -1) >= posting.issued:
            return
        search.issued[group] = posting.issued
        if posting.open:
            author = posting.card.person
            search.found[group] = Listing(group, posting.publisher, posting.predicate, author)
        else:
            search.found.pop(group, None)

    def handle_failure(self, task: Browsing, reason: Reason, now: float) -> None:
        """Ask another node for a board if one does not answer."""
        search = self._searches.get(task.search)
        if search is None:
            return
        search.open.pop(task.at, None)
        search.unanswered += 1
        if search.spare and search.unanswered <= self._config.boards:
            self._browse(task.search, search, search.spare.pop(0), b"", now)
        self._end_if_all(task.search, search)

    def _end_if_all(self, number: int, search: _Search) -> None:
        if not search.open:
            del self._searches[number]
            self.ended.append((number, tuple(search.found.values()), search.unanswered))


class _Subscription(Struct, eq=False):
    """A subscription of the application, and the groups that it wants."""

    command: JoinGroups
    predicate: Predicate
    listing: Listing | None
    """The one group to join; None: all that are found."""
    request: int | None
    """The request to answer; None: this node keeps the subscription, and a notice reports every search."""
    is_told: bool = False
    """Whether the command was answered."""
    search: int | None = None
    """The number of the search that is under way for it."""


class Subscriptions:
    """The subscriptions and searches of the application."""

    def __init__(
        self, station: FastStation, searches: Searches, memberships: Memberships, publisher: Publisher
    ) -> None:
        self._out = station.out
        self._ours = station.context.peer
        self._config = station.config
        self._attributes = station.content.attributes
        self._searches = searches
        self._memberships = memberships
        self._publisher = publisher
        self._subscriptions: dict[int, _Subscription] = {}
        self._searching: dict[int, tuple[int, int | None]] = {}
        """The request, or the subscription, that each search is for."""

    def reads(self, subscription: int) -> bool:
        """Return whether a subscription of the application is served by groups."""
        return subscription in self._subscriptions

    def search(self, request: int, text: str) -> None:
        """Look for groups for the application."""
        number = self._searches.begin(read_predicate(text, self._attributes))
        self._searching[number] = (request, None)

    def admit(self, request: int | None, command: JoinGroups) -> None:
        """Keep a subscription; `Refused` or `BadText` if it cannot be. No search starts before `begin`."""
        number = command.subscription
        if number in self._subscriptions:
            raise Refused(Reason.IN_USE, f"there is a subscription {number} already")
        if len(self._subscriptions) >= self._config.subscriptions:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.subscriptions} subscriptions")
        if command.region is not None and len(command.region) > REGION_CHARS:
            raise Refused(Reason.TOO_LARGE, f"a region has at most {REGION_CHARS} characters")
        predicate = read_predicate(command.predicate, self._attributes)
        listing = None if command.via is None else self._listing(command.via)
        self._subscriptions[number] = _Subscription(command, predicate, listing, request)

    def _listing(self, at: GroupAt) -> Listing:
        text = read_predicate(at.group, self._attributes).text
        publisher = at.publisher
        listing = Listing(group_id(publisher.peer, text), publisher, text)
        if publisher.peer == self._ours and listing.group not in self._publisher.groups:
            raise Refused(Reason.UNKNOWN, f"this node has no group {text}")
        return listing

    def begin(self, number: int, now: float) -> None:
        """Search for groups that carry what a subscription accepts, or join the one that it names."""
        listing = self._subscriptions[number].listing
        if listing is None:
            self._search(number)
        else:
            self._join(number, (listing,), 0, now)

    def leave(self, number: int, now: float) -> None:
        """End a subscription, and leave the groups that no other subscription needs."""
        del self._subscriptions[number]
        self._memberships.leave(number, now)

    def look_again(self, *, lacking: bool) -> None:
        """Search once more for all subscriptions, or only for those without a group."""
        for number, subscription in self._subscriptions.items():
            if subscription.listing is not None or subscription.search is not None:
                continue
            if not lacking or not self._memberships.serves(number):
                self._search(number)

    def _search(self, number: int) -> None:
        subscription = self._subscriptions[number]
        subscription.search = self._searches.begin(subscription.predicate)
        self._searching[subscription.search] = (0, number)

    def handle_found(self, search: int, listings: tuple[Listing, ...], unanswered: int, now: float) -> None:
        """Report the groups that a search found, or join them."""
        request, number = self._searching.pop(search)
        if number is None:
            self._out.reply(request, GroupsFound(listings, unanswered))
            return
        subscription = self._subscriptions.get(number)
        if subscription is None or subscription.search != search:
            return
        subscription.search = None
        self._join(number, listings, unanswered, now)

    def _join(self, number: int, listings: tuple[Listing, ...], unanswered: int, now: float) -> None:
        subscription = self._subscriptions[number]
        command, predicate = subscription.command, subscription.predicate
        if not subscription.is_told or subscription.request is None:
            self._memberships.expect_answers(subscription.request, number, predicate.text, unanswered)
            subscription.is_told = True
        region = self._config.region if command.region is None else command.region
        self._memberships.join(Wish(number, predicate, region, command.capacity), listings, now)
        self._memberships.answer_if_known(number)
