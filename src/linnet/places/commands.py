"""What the local application asks of places, in the document's own verbs, and what it is answered."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.places.channel.packet import Modifier
from linnet.places.deed import Deed, Policy


class HostPlace(Struct, frozen=True, gc=False):
    """Found a place, or change the deed of one that this node founded. Answered by `PlaceIs`."""

    place: TopicId | None = None
    """None: a new one, with a new key."""
    policy: Policy | None = None
    cohosts: tuple[AuthorId, ...] | None = None
    keepers: tuple[Contact, ...] | None = None
    """None: as it was, or the default."""


class EnterPlace(Struct, frozen=True, gc=False):
    """Enter a place, or connect again. Answered by `Entered`, `AtDoor`, `Turned` or `Declined`."""

    place: TopicId
    contacts: tuple[Contact, ...]
    """The host and relays, as a name or an address tells them; none: those of the last time."""
    modifiers: tuple[Modifier, ...] = ()
    text: bytes = b""
    """What to say at the door."""
    patience: float = 20.0
    waits: bool = True
    """Whether to wait for a host who decides who comes in; otherwise `AtDoor` tells at once that it does."""


class LeavePlace(Struct, frozen=True, gc=False):
    """Be a guest no longer, answered by `Talked`, or just not now, answered by `Done`.

    Whoever only disconnects is still a guest and comes in again without being asked.
    """

    place: TopicId
    for_good: bool


class Admit(Struct, frozen=True, gc=False):
    """Let somebody in who waits at the door. Answered by `Announced`."""

    place: TopicId
    nym: AuthorId
    since: int | None = None
    """The first message that is open to them; None: as the policy says."""


class Reject(Struct, frozen=True, gc=False):
    """Turn somebody away, with a word or to another place. Answered by `Done`."""

    place: TopicId
    nym: AuthorId
    method: str = "_failure_place_enter"
    modifiers: tuple[Modifier, ...] = ()
    text: bytes = b""


class Eject(Struct, frozen=True, gc=False):
    """Put a guest out. Answered by `Announced`."""

    place: TopicId
    nym: AuthorId


class Announce(Struct, frozen=True, gc=False):
    """Say something to all guests. Answered by `Announced` when it is durable here.

    With `more` the message stays open, and `AnnounceMore` brings the rest.
    """

    place: TopicId
    method: str
    modifiers: tuple[Modifier, ...] = ()
    body: bytes = b""
    reset: bool = False
    """State begins anew with this message."""
    more: bool = False


class AnnounceMore(Struct, frozen=True, gc=False):
    """More of the body of an open message. Answered by `Announced`."""

    place: TopicId
    message: int
    body: bytes
    more: bool


class TalkTo(Struct, frozen=True, gc=False):
    """Say something to the host alone. Answered by `Talked` when its device has written it down."""

    place: TopicId
    method: str
    modifiers: tuple[Modifier, ...] = ()
    body: bytes = b""
    patience: float = 20.0


class Look(Struct, frozen=True, gc=False):
    """Objects whose names begin so, or the one that fits a name best. Answered by `ObjectsAre`."""

    place: TopicId
    name: str
    at: bool = False
    """The best match for the whole name, instead of all below it."""


class WatchPlace(Struct, frozen=True, gc=False):
    """Hand me what is said from now on, or from a message on. Answered by `Watching`; then come items."""

    subscription: int
    place: TopicId
    durable: str | None = None
    """A name: what was not acknowledged comes again after a crash."""
    since: int | None = None
    """The first message to hand over; None: from now on, or where a durable one was."""
    until: int | None = None
    """The last one, then it ends: history, in order, and what is not held is asked for. -1: the newest."""
    offset: int = 0
    """Of the body of the first message, in history: the byte to begin with."""
    methods: tuple[str, ...] | None = None
    """None: everything that is said. Otherwise it shares the place with others who name methods: each message
    goes to those with the most specific name that covers its own, an empty one covers all. (): nothing."""
    objects: str | None = ""
    """Changes of objects whose names begin with these keywords; None: of none."""
    door: bool = True
    """Whether it is told who knocks."""


class ListGuests(Struct, frozen=True, gc=False):
    """Who is in. Answered by `GuestsAre`."""

    place: TopicId


class ListReceipts(Struct, frozen=True, gc=False):
    """Which guests have a message. Answered by `ReceiptsAre`, at the host and the co-hosts."""

    place: TopicId
    message: int


class ListPlaces(Struct, frozen=True, gc=False):
    """All places of this node. Answered by `PlacesAre`."""


PlaceCommand: TypeAlias = (
    HostPlace
    | EnterPlace
    | LeavePlace
    | Admit
    | Reject
    | Eject
    | Announce
    | AnnounceMore
    | TalkTo
    | Look
    | WatchPlace
    | ListGuests
    | ListReceipts
    | ListPlaces
)


class PlaceIs(Struct, frozen=True, gc=False):
    """A place of this node, as it stands."""

    deed: Deed
    role: str
    """`host`, `cohost`, `guest`, `keeper`, or `outside`."""
    voice: PeerId | None
    """The device that speaks now."""
    term: int
    fragment: int
    message: int
    generation: int
    missing: int
    """Fragments that are known to be missing."""
    guests: int
    upstreams: tuple[PeerId, ...]
    downstreams: tuple[PeerId, ...]
    variables: int
    state: int
    """The last message whose change of state was applied."""
    state_hash: bytes
    locked: int = 0
    """Messages that are here and cannot be read yet: their key is missing, and asked for."""
    contacts: tuple[Contact, ...] = ()
    """Others who are known to be in, and where they may be dialled."""


class PlacesAre(Struct, frozen=True, gc=False):
    """All of them."""

    places: tuple[PlaceIs, ...]


class Entered(Struct, frozen=True, gc=False):
    """We are in; state is up to date, and history from here on is open to us."""

    place: TopicId
    since: int


class AtDoor(Struct, frozen=True, gc=False):
    """The host decides who comes in, and was told of us. This node goes on to wait for it."""

    place: TopicId


class Turned(Struct, frozen=True, gc=False):
    """We were turned away, with these words; perhaps they name another place."""

    place: TopicId
    reason: Reason
    method: str
    modifiers: tuple[Modifier, ...]
    text: bytes


class Announced(Struct, frozen=True, gc=False):
    """Durable here, and on its way."""

    place: TopicId
    message: int
    fragment: int
    """The last fragment of it so far; -1: none yet."""
    event: EventId | None
    size: int = 0
    """Bytes of its body so far."""


class Talked(Struct, frozen=True, gc=False):
    """The host's device has it."""

    place: TopicId
    request: int
    voice: PeerId


class ObjectsAre(Struct, frozen=True, gc=False):
    """Names and values, in lexical order."""

    place: TopicId
    objects: tuple[tuple[str, bytes], ...]
    state: int


class GuestIs(Struct, frozen=True, gc=False):
    """A guest, and how far it is known to be."""

    nym: AuthorId
    since: int
    """The first message that is open to it."""
    upto: int | None
    """It has everything below this fragment; None: it gave no receipt yet."""


class GuestsAre(Struct, frozen=True, gc=False):
    """Guests, and who waits at the door."""

    place: TopicId
    guests: tuple[GuestIs, ...]
    waiting: tuple[AuthorId, ...]
    said: tuple[bytes, ...] = ()
    """What each of these said at the door."""


class ReceiptIs(Struct, frozen=True, gc=False):
    """What is known of a guest and a message."""

    nym: AuthorId
    state: str
    """`delivered`: it gave a receipt; `pending`: not yet; `closed`: the message is not open to it."""
    at_ms: int | None
    """When the receipt was given, by the guest's own clock."""


class ReceiptsAre(Struct, frozen=True, gc=False):
    """For every guest of now whether it has a message, as far as the receipts tell."""

    place: TopicId
    message: int
    receipts: tuple[ReceiptIs, ...]


class Watching(Struct, frozen=True, gc=False):
    """Items come from this message on."""

    place: TopicId
    since: int
    resumed: bool = False
    """Whether a durable one of this name was there before."""


PlaceResult: TypeAlias = (
    PlaceIs
    | PlacesAre
    | Entered
    | AtDoor
    | Turned
    | Announced
    | Talked
    | ObjectsAre
    | GuestsAre
    | ReceiptsAre
    | Watching
)
