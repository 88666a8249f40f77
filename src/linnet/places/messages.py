"""Messages between nodes about places (tags 90 to 109). Fragments travel in `delivery.Data`."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import Contact, Count, WireAuthorId, WireEventId, WirePeerId, WireSignature, WireTopicId
from linnet.core.messages import BulkMessage, Message
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.places.deed import Deed

ENTRY_BYTES = 32 * 1024
"""The most bytes of the text at the door, and of the text of the answer."""
RELAYS = 16
TERMS = 32
"""The most terms in one message."""
STATE_PAGE_BYTES = 256 * 1024
ROLL_PAGE_BYTES = 256 * 1024
ROLL_BYTES = 1 << 28
"""The most bytes of a roll: enough for more than four million guests."""

Text = Annotated[bytes, Meta(max_length=ENTRY_BYTES)]
Peers = Annotated[tuple[Contact, ...], Meta(max_length=RELAYS)]
Cards = Annotated[tuple[Card, ...], Meta(max_length=256)]


class MessageAtPlace(Message, frozen=True):
    """Base of the messages to a node that is in a place, or may let the sender in."""

    place: WireTopicId


class Enter(MessageAtPlace, frozen=True, tag=90):
    """Let me in, or connect me again: the first message about a place on a link.

    The card's device must be the peer at the other end, so that nobody can replay it from elsewhere.
    """

    card: Card
    at_ms: Count
    known: Count
    """The version of the deed that the sender has; 0: none."""
    upto: Count
    """The sender has everything below this fragment."""
    state: Count
    """The last message whose change of state the sender has applied; 0: none."""
    text: Text
    """The text in the form of PSYC: `linnet.places.channel.packet`."""
    prekeys: Annotated[bytes, Meta(max_length=4096)] | None
    """Prekeys to seal the key of an encrypted place to this device."""
    sig: WireSignature
    term: Count = 0
    """The last term that the sender knows; 0: none. Signed, as all before it."""
    opening: WireEventId | None = None
    """The fragment that opened that term."""
    stranded: bool = False
    """Whether all upstreams of the sender lie: then it is taken in for a while, even without room."""
    patient: bool = False
    """Whether to tell the sender that it waits (`Reason.WAITING`). Not signed; older nodes do not set it."""


class Decision(MessageAtPlace, frozen=True, tag=91):
    """The answer at the door. It is a redirect if its relays do not include the sender."""

    admitted: bool
    reason: Reason | None
    deed: Deed | None
    relays: Peers
    text: Text
    next: Count
    """The number of the next fragment, as far as the sender knows."""
    term: Count
    membership: Annotated[tuple[Unverified, ...], Meta(max_length=16)]
    """Fragments that the asker needs first: the opening of the term, and the notice that it came in."""
    cards: Cards
    opening: WireEventId | None = None
    """The fragment that opened `term`."""
    card: Card | None = None
    """The card of the device that answers, so that fragments from below may be passed up to it."""


class Away(MessageAtPlace, frozen=True, tag=92):
    """Send me nothing more of this place over this link. This does not end a membership."""

    reason: Reason | None


class Replay(MessageAtPlace, BulkMessage, frozen=True, tag=93):
    """Send this fragment again, named by its number, or by its message and offset."""

    request: Count
    fragment: Count | None
    message: Count
    offset: Count
    flags: Count
    """Reserved for the peer that answers; without a meaning yet."""


class Code(IntEnum):
    """The result of a replay (Toth 2013, section 3.8)."""

    OK = 0
    NOT_FOUND = 1
    ACCESS_DENIED = 3
    INTERNAL_ERROR = 4


class Replayed(MessageAtPlace, BulkMessage, frozen=True, tag=94):
    """One fragment as it was received, or the reason why not."""

    request: Count
    code: Code
    unit: Unverified | None
    card: Card | None


class AskState(MessageAtPlace, frozen=True, tag=95):
    """Bring my state up to date, from after this message on."""

    request: Count
    state: Count


class StateIs(MessageAtPlace, frozen=True, tag=96):
    """A page of the whole state as of a message that carries its hash; not signed, checked by that hash.

    Where replaying is cheaper, it holds the numbers of the messages to replay instead.
    """

    request: Count
    message: Count
    """The state is as of this message; 0: replay instead."""
    replay: Annotated[tuple[Count, ...], Meta(max_length=4096)]
    """Messages that change state, after that one, or all that the asker lacks."""
    offset: Count
    data: Annotated[bytes, Meta(max_length=STATE_PAGE_BYTES)]
    done: bool
    reason: Reason | None


class Talk(MessageAtPlace, frozen=True, tag=97):
    """A piece of a guest's request to the host, sealed to the device that is the voice of the place.

    Signed over everything but the hops, the place included: it cannot be replayed into another one.
    """

    card: Card
    to: WirePeerId
    request: Count
    """The number of the request, which grows from request to request of this device in this place."""
    offset: Count
    last: bool
    sealed: Annotated[bytes, Meta(max_length=61 * 1024)]
    sig: WireSignature
    hops: Annotated[int, Meta(ge=0, le=64)]


class Heard(MessageAtPlace, frozen=True, tag=98):
    """The host's device has all of a request, and stored it; goes back the way that the request came."""

    device: WirePeerId
    """The device that made the request."""
    request: Count
    reason: Reason | None
    """Why the request was not taken; None if it was."""
    sig: WireSignature


class Unheard(MessageAtPlace, frozen=True, tag=109):
    """There is no way to the host's device from here: it is away. Goes back the way the request came.

    Any peer on the way can say so, and may be wrong: it ends nothing before its time.
    """

    device: WirePeerId
    """The device that made the request."""
    request: Count


class DeedIs(Message, frozen=True, tag=99):
    """The deed as the sender knows it, for a peer that has an older one."""

    deed: Deed


class GuestReceipt(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A guest's device has everything below this fragment that it may see; the latest receipt counts."""

    nym: WireAuthorId
    device: WirePeerId
    term: Count
    upto: Count
    at_ms: Count
    sig: WireSignature


class Receipts(MessageAtPlace, frozen=True, tag=100):
    """Receipts of guests on their way up to the host; relays join several into one message."""

    receipts: Annotated[tuple[GuestReceipt, ...], Meta(min_length=1, max_length=256)]
    cards: Cards


class AskTerms(MessageAtPlace, frozen=True, tag=107):
    """Send me the terms that I do not know."""

    known: Count
    """The version of the deed that the sender has."""
    first: Count
    """Terms before this one are of no use to the sender."""
    term: Count
    """The last term that the sender knows."""
    line: Annotated[tuple[WireEventId, ...], Meta(max_length=TERMS)]
    """The fragments that opened the sender's last terms, the last one first."""


class TermsAre(MessageAtPlace, frozen=True, tag=108):
    """The fragments that opened the terms after the last one that both peers know."""

    units: Annotated[tuple[Unverified, ...], Meta(max_length=TERMS)]
    cards: Cards
    done: bool
    """Whether these are all such terms."""


class Yield(MessageAtPlace, frozen=True, tag=101):
    """A co-host asks the voice to hand over to it."""

    term: Count
    card: Card
    sig: WireSignature


class Yielded(MessageAtPlace, frozen=True, tag=102):
    """Go on from here: the voice hands over and says nothing more in that term. Or the reason why not."""

    term: Count
    fragment: Count
    message: Count
    head: WireEventId | None
    reason: Reason | None


class Keep(Message, frozen=True, tag=103):
    """The host asks a relay to keep the messages of a place."""

    deed: Deed
    card: Card | None = None
    """The card of the asking device, which must be the peer at the other end."""


class Kept(MessageAtPlace, frozen=True, tag=104):
    """The relay's answer to `Keep`."""

    reason: Reason | None


class AskRoll(MessageAtPlace, frozen=True, tag=105):
    """A question about the guests: a piece of the roll, as of the message named or of any."""

    request: Count
    message: Count
    """The change that the roll belongs to, since it is asked for in pieces; 0: any that the peer has."""
    offset: Count


class RollIs(MessageAtPlace, frozen=True, tag=106):
    """A piece of the roll; not signed, checked by the hash in its change of membership."""

    request: Count
    change: Unverified | None
    """The change that the roll belongs to; None: the peer cannot answer now, for `reason`."""
    card: Card | None
    offset: Count
    size: Annotated[int, Meta(ge=0, le=ROLL_BYTES)]
    """The bytes of the whole roll."""
    lines: Annotated[bytes, Meta(max_length=ROLL_PAGE_BYTES)]
    """Lines in the form of `linnet.places.channel.membership`."""
    reason: Reason | None


PlaceMessage: TypeAlias = (
    Enter
    | Decision
    | Away
    | Replay
    | Replayed
    | AskState
    | StateIs
    | Talk
    | Heard
    | Unheard
    | DeedIs
    | Receipts
    | AskTerms
    | TermsAre
    | Yield
    | Yielded
    | Keep
    | Kept
    | AskRoll
    | RollIs
)
