"""What the application wants of groups: searched for, joined, and looked for again."""

from __future__ import annotations

from linnet.content.commands import Ended
from linnet.content.config import ContentConfig
from linnet.content.fast.commands import GroupsFound, JoinGroups, Listing
from linnet.content.fast.config import FastConfig
from linnet.content.fast.effects import FastEffect
from linnet.content.fast.memberships import Memberships
from linnet.content.fast.messages import REGION_CHARS
from linnet.content.fast.publisher import Publisher
from linnet.content.fast.searches import Searches
from linnet.content.fast.signed import group_id
from linnet.content.predicates import Predicate, read_predicate
from linnet.core.effects import Reply
from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context


class _Subscription:
    """What the application wants, and of which groups."""

    __slots__ = ("command", "is_told", "predicate", "request", "search")

    def __init__(self, command: JoinGroups, predicate: Predicate, request: int) -> None:
        self.command = command
        self.predicate = predicate
        self.request = request
        self.is_told = False
        """Whether the command was answered. What this node asks itself is told after every search."""
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
    ) -> None:
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

    def search(self, request: int, text: str) -> list[FastEffect]:
        """The application wants to know which groups there are."""
        number, effects = self._searches.begin(read_predicate(text, self._attributes))
        self._searching[number] = (request, None)
        return effects

    def join(self, request: int, command: JoinGroups, now: float) -> list[FastEffect]:
        """The application wants to be handed something."""
        number = command.subscription
        if number in self._subscriptions:
            raise Refused(Reason.IN_USE, f"there is a subscription {number} already")
        if len(self._subscriptions) >= self._config.subscriptions:
            raise Refused(Reason.TOO_MANY, f"at most {self._config.subscriptions} subscriptions")
        if command.region is not None and len(command.region) > REGION_CHARS:
            raise Refused(Reason.TOO_LARGE, f"a region has at most {REGION_CHARS} characters")
        predicate = read_predicate(command.predicate, self._attributes)
        subscription = _Subscription(command, predicate, request)
        if command.via is None:
            self._subscriptions[number] = subscription
            return self._search(number)
        text = read_predicate(command.via.group, self._attributes).text
        publisher = command.via.publisher
        listing = Listing(group_id(publisher.peer, text), publisher, text)
        if publisher.peer == self._ours and listing.group not in self._publisher.groups:
            raise Refused(Reason.UNKNOWN, f"this node has no group {text}")
        self._subscriptions[number] = subscription
        return self._join(number, (listing,), 0, now)

    def leave(self, request: int, number: int, now: float) -> list[FastEffect]:
        """The application wants no more of it."""
        subscription = self._subscriptions.pop(number, None)
        if subscription is None:
            raise Refused(Reason.UNKNOWN, f"there is no subscription {number}")
        effects: list[FastEffect] = [Reply(request, Ended())]
        if not subscription.is_told and subscription.request > 0:
            declined = Declined(Reason.NOT_NEEDED, "it was ended before it stood")
            effects.append(Reply(subscription.request, declined))
        return [*effects, *self._memberships.leave(number, now)]

    def look_again(self, *, lacking: bool) -> list[FastEffect]:
        """Search once more for all subscriptions, or for those that no group serves."""
        effects: list[FastEffect] = []
        for number, subscription in self._subscriptions.items():
            if subscription.command.via is not None or subscription.search is not None:
                continue
            if not lacking or not self._memberships.serves(number):
                effects += self._search(number)
        return effects

    def _search(self, number: int) -> list[FastEffect]:
        subscription = self._subscriptions[number]
        subscription.search, effects = self._searches.begin(subscription.predicate)
        self._searching[subscription.search] = (0, number)
        return effects

    def found(
        self, search: int, listings: tuple[Listing, ...], unanswered: int, now: float
    ) -> list[FastEffect]:
        """A search has ended: its groups are told, or joined."""
        request, number = self._searching.pop(search)
        if number is None:
            return [Reply(request, GroupsFound(listings, unanswered))]
        subscription = self._subscriptions.get(number)
        if subscription is None or subscription.search != search:
            return []
        subscription.search = None
        return self._join(number, listings, unanswered, now)

    def _join(
        self, number: int, listings: tuple[Listing, ...], unanswered: int, now: float
    ) -> list[FastEffect]:
        subscription = self._subscriptions[number]
        command, predicate = subscription.command, subscription.predicate
        if not subscription.is_told or subscription.request <= 0:
            self._memberships.waits(subscription.request, number, predicate.text, unanswered)
            subscription.is_told = True
        region = self._config.region if command.region is None else command.region
        effects = self._memberships.join(number, predicate, listings, region, command.capacity, now)
        return [*effects, *self._memberships.told(number)]
