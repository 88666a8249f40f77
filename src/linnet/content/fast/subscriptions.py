"""What the application wants of groups: searched for, joined, and looked for again."""

from __future__ import annotations

from linnet.content.commands import GroupAt
from linnet.content.config import ContentConfig
from linnet.content.fast.commands import GroupsFound, JoinGroups, Listing
from linnet.content.fast.config import FastConfig
from linnet.content.fast.memberships import Memberships
from linnet.content.fast.messages import REGION_CHARS
from linnet.content.fast.publisher import Publisher
from linnet.content.fast.searches import Searches
from linnet.content.fast.signed import group_id
from linnet.content.predicate import Predicate, read_predicate
from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox


class _Subscription:
    """What the application wants, and of which groups."""

    __slots__ = ("command", "is_told", "listing", "predicate", "request", "search")

    def __init__(
        self, command: JoinGroups, predicate: Predicate, listing: Listing | None, request: int | None
    ) -> None:
        self.command = command
        self.predicate = predicate
        self.listing = listing
        """The one group to be in; None: all that are found."""
        self.request = request
        """None: this node keeps it, and is told after every search."""
        self.is_told = False
        """Whether the command was answered."""
        self.search: int | None = None
        """The search that is under way for it."""


class Subscriptions:
    """Subscriptions, and searches of the application."""

    def __init__(
        self,
        context: Context,
        config: FastConfig,
        content: ContentConfig,
        searches: Searches,
        memberships: Memberships,
        publisher: Publisher,
        out: Outbox,
    ) -> None:
        self._out = out
        self._ours = context.peer
        self._config = config
        self._attributes = content.attributes
        self._searches = searches
        self._memberships = memberships
        self._publisher = publisher
        self._subscriptions: dict[int, _Subscription] = {}
        self._searching: dict[int, tuple[int, int | None]] = {}
        """By search: the request, or the subscription, that it is for."""

    def reads(self, subscription: int) -> bool:
        """Whether a subscription of the application is one of these."""
        return subscription in self._subscriptions

    def search(self, request: int, text: str) -> None:
        """Look for groups for the application."""
        number = self._searches.begin(read_predicate(text, self._attributes))
        self._searching[number] = (request, None)

    def admit(self, request: int | None, command: JoinGroups) -> None:
        """Keep a subscription; `Refused` or `BadText` if it cannot be. Nothing is done before `begin`."""
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
        """Look for groups that carry what a subscription accepts, or join the one that it names."""
        listing = self._subscriptions[number].listing
        if listing is None:
            self._search(number)
        else:
            self._join(number, (listing,), 0, now)

    def leave(self, number: int, now: float) -> None:
        """End a subscription, and leave groups of which nothing else is wanted."""
        del self._subscriptions[number]
        self._memberships.leave(number, now)

    def look_again(self, *, lacking: bool) -> None:
        """Search once more for all subscriptions, or for those that no group serves."""
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
        """Tell or join the groups that a search found."""
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
        self._memberships.join(number, predicate, listings, region, command.capacity, now)
        self._memberships.answer_if_known(number)
