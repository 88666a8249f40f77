"""Content as the control API tells it."""

from __future__ import annotations

from linnet.content.commands import ContentIs, ContentItem, Fate, InGroups, Match, Outcome, Overflow
from linnet.content.fast.commands import GroupOutcome, GroupsStatus, Listing
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, to_text
from linnet.node.addresses import contact_text
from linnet.node.content_types import (
    ContentItemView,
    ContentPublishReply,
    ContentReply,
    FateView,
    GroupsReply,
    InGroupsView,
    ListingView,
    MatchView,
    MembershipView,
    OverflowView,
    OwnGroupView,
    SubscriptionView,
)
from linnet.node.control_types import EndedView
from linnet.node.place_views import text_of


def outcome_view(outcome: Outcome) -> ContentPublishReply:
    """What became of an event."""
    fates = outcome.fates
    return ContentPublishReply(
        to_text(Sort.EVENT, outcome.event),
        sum(fate.delivered for fate in fates),
        sum(fate.missed for fate in fates),
        tuple(map(_fate_view, fates)),
        matches=sum(fate.matches for fate in fates),
        settled=all(fate.settled for fate in fates),
        silent=tuple(dict.fromkeys(to_text(Sort.DEVICE, peer) for fate in fates for peer in fate.silent)),
        more_silent=sum(fate.more_silent for fate in fates),
    )


def _fate_view(fate: Fate) -> FateView:
    return FateView(
        fate.attribute,
        fate.delivered,
        fate.missed,
        fate.reason and fate.reason.value,
        fate.again,
        fate.matches,
        fate.settled,
        tuple(to_text(Sort.DEVICE, peer) for peer in fate.silent),
        fate.more_silent,
    )


def group_outcome_view(group: str, outcome: GroupOutcome) -> ContentPublishReply:
    """What became of an event that was said in a group."""
    return ContentPublishReply(
        to_text(Sort.EVENT, outcome.event),
        outcome.reached,
        len(outcome.missed),
        (),
        group,
        outcome.wanted,
        outcome.taken_back,
        settled=not outcome.silent,
        silent=tuple(to_text(Sort.DEVICE, peer) for peer in outcome.silent),
    )


def listing_view(listing: Listing) -> ListingView:
    """A group, and whose it is."""
    person = None if listing.author is None else to_text(Sort.PERSON, listing.author)
    group, publisher = to_text(Sort.TOPIC, listing.group), contact_text(listing.publisher)
    return ListingView(group, listing.predicate, publisher, person)


def groups_view(status: GroupsStatus) -> GroupsReply:
    """How groups stand."""
    ours = (
        OwnGroupView(
            to_text(Sort.TOPIC, each.group),
            each.predicate,
            each.listed,
            each.boards,
            each.members,
            each.direct,
        )
        for each in status.groups
    )
    joined = (
        MembershipView(listing_view(each.listing), each.stands, each.promised, each.serves)
        for each in status.memberships
    )
    return GroupsReply(tuple(ours), tuple(joined), status.postings)


def content_view(status: ContentIs) -> ContentReply:
    """How content stands."""
    return ContentReply(
        tuple(
            SubscriptionView(
                each.name,
                each.predicate,
                each.attribute,
                each.read,
                each.waiting,
                each.lost,
                each.via,
                None if each.at is None else contact_text(each.at.publisher),
                each.groups,
            )
            for each in status.subscriptions
        ),
        status.rendezvous,
        status.routes,
        status.settled,
    )


def item_view(item: ContentItem | InGroups | Ended) -> ContentItemView:
    """What a subscription is handed."""
    match item:
        case Match():
            return MatchView(
                item.number,
                to_text(Sort.EVENT, item.event),
                to_text(Sort.PERSON, item.author),
                item.attributes,
                item.time / 1000,
                item.hops,
                item.body,
                text_of(item.body),
            )
        case Overflow(number, count, reason):
            return OverflowView(number, count, reason.value)
        case InGroups():
            return InGroupsView(item.joined, item.refused, item.unanswered, item.look_again)
        case Ended(reason):
            return EndedView(None if reason is None else reason.value)
