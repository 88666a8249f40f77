"""Signed or authenticated statements: advertisements, enrolments and receipts; and the ids of groups.

A deputy cannot make up that members have an event. A member shares a key with the publisher alone, sent when
it joins over a link between the two. Its receipt for an event is a message authentication code: 3
microseconds, where a signature would cost the publisher 65 for each member and event.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from msgspec import msgpack, structs

from linnet.content.fast.messages import Enrolment, Posting
from linnet.content.predicate import Predicate, foreign_predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.identity.cards import check_dates
from linnet.identity.keys import SigningKey, verify

_GROUP_TAG = b"linnet/fast/group/1"
_POSTING_TAG = b"linnet/fast/posting/1"
_ENROLMENT_TAG = b"linnet/fast/enrolment/1"
_LEEWAY = 300.0
"""Seconds by which clocks may differ."""
TEXTS_CHARS = 4096
"""Characters of all predicates of a membership: a message with a batch of them has to fit a frame."""
_encode = msgpack.Encoder().encode


def group_id(publisher: PeerId, predicate: str) -> TopicId:
    """Return the id of a group, which is the topic of its events: made of its publisher and predicate."""
    return TopicId(sha256(_GROUP_TAG + publisher + predicate.encode()).digest())


def make_posting(
    context: Context, hints: tuple[str, ...], predicate: str, opened: bool, issued: int, expires: int
) -> Posting:
    """Sign an advertisement of ours."""
    bare = Posting(Contact(context.peer, hints), context.card, predicate, opened, issued, expires, bytes(64))
    return structs.replace(bare, sig=context.key.sign(_signed(_POSTING_TAG, bare)))


def check_posting(
    posting: Posting, context: Context, attributes: int, longest: float, now: float
) -> Predicate:
    """Return an advertisement's predicate; `RemoteError` if it has expired or was not signed so."""
    predicate = foreign_predicate(posting.predicate, attributes)
    if posting.card.device_key != posting.publisher.peer:
        raise RemoteError(Reason.UNKNOWN_DEVICE, "the card is of another device")
    if posting.expires <= now:
        raise RemoteError(Reason.STALE, "an advertisement that is over")
    if posting.expires > now + longest + _LEEWAY or posting.issued > 1000 * (now + _LEEWAY):
        raise RemoteError(Reason.FUTURE_TIME, "an advertisement from a time to come, or for too long")
    context.card_check(posting.card)
    check_dates(posting.card, now)
    verify(posting.publisher.peer, _signed(_POSTING_TAG, posting), posting.sig)
    return predicate


def make_enrolment(
    key: SigningKey,
    group: TopicId,
    hints: tuple[str, ...],
    predicates: tuple[str, ...],
    region: str,
    capacity: int,
    until: int,
) -> Enrolment:
    """Sign our own enrolment in a group."""
    bare = Enrolment(
        group, Contact(PeerId(key.public), hints), predicates, region, capacity, until, bytes(64)
    )
    return structs.replace(bare, sig=key.sign(_signed(_ENROLMENT_TAG, bare)))


def check_enrolment(enrolment: Enrolment, attributes: int, now: float) -> tuple[Predicate, ...]:
    """Return an enrolment's predicates; `RemoteError` if it has expired or its signature is wrong."""
    if sum(map(len, enrolment.predicates)) > TEXTS_CHARS:
        raise RemoteError(Reason.TOO_LARGE, f"predicates of more than {TEXTS_CHARS} characters in all")
    if enrolment.until + _LEEWAY <= now:
        raise RemoteError(Reason.STALE, "an enrolment that is over")
    predicates = tuple(foreign_predicate(text, attributes) for text in enrolment.predicates)
    verify(enrolment.member.peer, _signed(_ENROLMENT_TAG, enrolment), enrolment.sig)
    return predicates


def _signed(tag: bytes, said: Posting | Enrolment) -> bytes:
    return tag + _encode(structs.astuple(said)[:-1])


KEY_BYTES = 32
RECEIPT_BYTES = 16
_TAG = b"linnet/fast/receipt/1"


def receipt(key: bytes, event: EventId) -> bytes:
    """Return a member's receipt: its statement to the publisher that it has this event."""
    return hmac.digest(key, _TAG + event, "sha256")[:RECEIPT_BYTES]


def is_receipt(key: bytes, event: EventId, given: bytes | None) -> bool:
    """Return whether the member with this key gave this receipt for this event."""
    return given is not None and hmac.compare_digest(receipt(key, event), given)
