"""What nodes tell each other about places (tags 90 to 109). Fragments travel in `delivery.Data`."""

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
"""Most bytes of what somebody says at the door, and of what is answered there."""
RELAYS = 16
TERMS = 32
"""Terms that are told or named at once."""
STATE_PAGE_BYTES = 256 * 1024
ROLL_PAGE_BYTES = 256 * 1024
ROLL_BYTES = 1 << 28
"""Most bytes of a roll: of more than four million guests."""

Text = Annotated[bytes, Meta(max_length=ENTRY_BYTES)]
Peers = Annotated[tuple[Contact, ...], Meta(max_length=RELAYS)]
Cards = Annotated[tuple[Card, ...], Meta(max_length=256)]


class Enter(Message, frozen=True, tag=90):
    """Let me in, or connect me again: the first that is said about a place on a link.

    The card's device must be the peer at the other end, so that nobody can replay it from elsewhere.
    """

    place: WireTopicId
    card: Card
    at_ms: Count
    known: Count
    """The version of the deed that the sender has; 0: none."""
    upto: Count
    """It has everything below this fragment."""
    state: Count
    """The last message whose change of state it has applied; 0: none."""
    text: Text
    """In the form of PSYC: `linnet.places.channel.packet`."""
    prekeys: Annotated[bytes, Meta(max_length=4096)] | None
    """With which the key of an encrypted place can be sealed to this device."""
    sig: WireSignature
    term: Count = 0
    """The last term that the sender knows; 0: none. Signed, as all before it."""
    opening: WireEventId | None = None
    """The fragment that opened it."""
    stranded: bool = False
    """Whether all who send to it lie: then it is taken in for a while also where there is no room."""
    patient: bool = False
    """Whether it wants to be told that it has to wait (`Reason.WAITING`). Not signed; older nodes do not."""


class Decision(Message, frozen=True, tag=91):
    """The answer at the door. Whose relays lack the sender itself is a redirect."""

    place: WireTopicId
    admitted: bool
    reason: Reason | None
    deed: Deed | None
    relays: Peers
    text: Text
    next: Count
    """The number of the next fragment, as far as the sender knows."""
    term: Count
    membership: Annotated[tuple[Unverified, ...], Meta(max_length=16)]
    """Fragments that the asker must know first: the opening of the term, and the notice that it came in."""
    cards: Cards
    opening: WireEventId | None = None
    """The fragment that opened `term`."""
    card: Card | None = None
    """Of the device that answers, so that what is said below it may be passed up to it."""


class Away(Message, frozen=True, tag=92):
    """Send me nothing more of this place over this link. Says nothing about membership."""

    place: WireTopicId
    reason: Reason | None


class Replay(BulkMessage, frozen=True, tag=93):
    """Send this fragment again: by its number, or by its message and offset."""

    place: WireTopicId
    request: Count
    fragment: Count | None
    message: Count
    offset: Count
    flags: Count
    """For whoever answers; handed on untouched."""


class Code(IntEnum):
    """How a replay ended (Toth 2013, section 3.8)."""

    OK = 0
    NOT_FOUND = 1
    ACCESS_DENIED = 3
    INTERNAL_ERROR = 4


class Replayed(BulkMessage, frozen=True, tag=94):
    """One fragment as it came, or why not."""

    place: WireTopicId
    request: Count
    code: Code
    unit: Unverified | None
    card: Card | None


class AskState(Message, frozen=True, tag=95):
    """Bring my state up to date, from after this message on."""

    place: WireTopicId
    request: Count
    state: Count


class StateIs(Message, frozen=True, tag=96):
    """A page of the whole state as of a message that carries its hash; not signed, checked by that hash.

    Where replaying is cheaper there is no page but the numbers of the messages to replay.
    """

    place: WireTopicId
    request: Count
    message: Count
    """As of this message; 0: replay instead."""
    replay: Annotated[tuple[Count, ...], Meta(max_length=4096)]
    """Messages that change state, after that one, or all that the asker lacks."""
    offset: Count
    data: Annotated[bytes, Meta(max_length=STATE_PAGE_BYTES)]
    done: bool
    reason: Reason | None


class Talk(Message, frozen=True, tag=97):
    """A piece of what a guest says to the host, sealed to the device that speaks in the place.

    Signed over everything but the hops, the place included: it cannot be played into another one.
    """

    place: WireTopicId
    card: Card
    to: WirePeerId
    request: Count
    """Grows from request to request of this device in this place."""
    offset: Count
    last: bool
    sealed: Annotated[bytes, Meta(max_length=61 * 1024)]
    sig: WireSignature
    hops: Annotated[int, Meta(ge=0, le=64)]


class Heard(Message, frozen=True, tag=98):
    """The host's device has all of a request, and wrote it down; goes back the way it came."""

    place: WireTopicId
    device: WirePeerId
    """Whose request it was."""
    request: Count
    reason: Reason | None
    """Why it was not taken."""
    sig: WireSignature


class Unheard(Message, frozen=True, tag=109):
    """There is no way to the host's device from here: it is away. Goes back the way the request came.

    Anybody on the way can say so, and need not be right: it ends nothing before its time.
    """

    place: WireTopicId
    device: WirePeerId
    """Whose request it was."""
    request: Count


class DeedIs(Message, frozen=True, tag=99):
    """The deed as the sender knows it, for whoever has an older one."""

    deed: Deed


class GuestReceipt(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A guest's device has everything below this fragment that it may see; the latest one counts."""

    nym: WireAuthorId
    device: WirePeerId
    term: Count
    upto: Count
    at_ms: Count
    sig: WireSignature


class Receipts(Message, frozen=True, tag=100):
    """Receipts of guests on their way up to the host; relays put several together."""

    place: WireTopicId
    receipts: Annotated[tuple[GuestReceipt, ...], Meta(min_length=1, max_length=256)]
    cards: Cards


class AskTerms(Message, frozen=True, tag=107):
    """Tell me the terms that I do not know."""

    place: WireTopicId
    known: Count
    """The version of the deed that the sender has."""
    first: Count
    """Terms before this one are of no use to it."""
    term: Count
    """The last term that it knows."""
    line: Annotated[tuple[WireEventId, ...], Meta(max_length=TERMS)]
    """The fragments that opened its last terms, the last one first."""


class TermsAre(Message, frozen=True, tag=108):
    """The fragments that opened the terms after the last one that both know."""

    place: WireTopicId
    units: Annotated[tuple[Unverified, ...], Meta(max_length=TERMS)]
    cards: Cards
    done: bool
    """Whether these are all of them."""


class Yield(Message, frozen=True, tag=101):
    """A co-host asks the device that speaks to let it speak."""

    place: WireTopicId
    term: Count
    card: Card
    sig: WireSignature


class Yielded(Message, frozen=True, tag=102):
    """Go on from here: nothing more will be said in that term. Or why not."""

    place: WireTopicId
    term: Count
    fragment: Count
    message: Count
    head: WireEventId | None
    reason: Reason | None


class Keep(Message, frozen=True, tag=103):
    """The host asks a relay to keep what is said in a place."""

    deed: Deed
    card: Card | None = None
    """Of the device that asks: it must be the peer at the other end."""


class Kept(Message, frozen=True, tag=104):
    """The relay's answer."""

    place: WireTopicId
    reason: Reason | None


class AskRoll(Message, frozen=True, tag=105):
    """Who is in? A piece of the roll, of the message that is named or of any."""

    place: WireTopicId
    request: Count
    message: Count
    """The change that the roll is to be of, since it is asked for in pieces; 0: whichever you have."""
    offset: Count


class RollIs(Message, frozen=True, tag=106):
    """A piece of the roll; not signed, checked by the hash in the change that it is of."""

    place: WireTopicId
    request: Count
    change: Unverified | None
    """None: we cannot tell now, and why."""
    card: Card | None
    offset: Count
    size: Annotated[int, Meta(ge=0, le=ROLL_BYTES)]
    """Of the whole."""
    lines: Annotated[bytes, Meta(max_length=ROLL_PAGE_BYTES)]
    """In the form of `linnet.places.channel.roll`."""
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
