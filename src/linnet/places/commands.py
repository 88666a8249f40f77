"""Commands of the local application about places, in the terms of Toth 2013, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import AsText, Command, Commas, Done, Hex
from linnet.places.address import PlaceAddress
from linnet.places.channel.packet import ASSIGN, AUGMENT, DIMINISH, NAME_CHARS, TRANSIENT, Modifier
from linnet.places.deed import COHOSTS, KEEPERS, Deed, Policy

ANNOUNCEMENT = "_message"
REQUEST = "_request"
REFUSAL = "_failure_place_enter"
NAME = "_name"
"""The object that holds the name of the place."""
ELSEWHERE = "_place"
"""The variable of a refusal that gives the address of another place."""
MAX_MODIFIERS = 1024
MAX_METHODS = 64
MAX_CONTACTS = 16
WATCHER_CHARS = 256
"""Characters of the name of a durable subscription."""
LARGEST_NUMBER = 2**53
"""The largest integer that every program reads exactly from JSON."""

Method = Annotated[
    str,
    Meta(min_length=1, max_length=NAME_CHARS, pattern="^[0-9A-Za-z_]+$", description="such as `_message`"),
]
Keywords = Annotated[str, Meta(max_length=NAME_CHARS, pattern="^[0-9A-Za-z_]*$")]
Number = Annotated[int, Meta(ge=1, le=LARGEST_NUMBER)]
Values = Annotated[dict[Method, Annotated[str, Meta(max_length=1024 * 1024)]], Meta(max_length=MAX_MODIFIERS)]
Modifiers = Annotated[tuple[Modifier, ...], Meta(max_length=MAX_MODIFIERS)]
Cohosts = Annotated[tuple[AuthorId, ...], Meta(max_length=COHOSTS)]
Keepers = Annotated[tuple[Contact, ...], Meta(max_length=KEEPERS)]
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=MAX_CONTACTS)]
Words = Annotated[str, Meta(max_length=8192)]
Patience = Annotated[float, Meta(ge=0, le=3600, description="seconds")]


class HostPlace(Command["PlaceIs"], frozen=True, gc=False):
    """Found a place, with a new key."""

    policy: Policy = Policy.PUBLIC
    cohosts: Cohosts = ()
    keepers: Keepers = ()


class ChangePlace(Command["PlaceIs"], frozen=True, gc=False):
    """Change the deed of a place that this device founded; what is absent stays as it is."""

    place: TopicId
    policy: Policy | None = None
    """Who may enter, and what of the past is open to them."""
    cohosts: Cohosts | None = None
    """Who may speak while the host is away, in order of rank."""
    keepers: Keepers | None = None
    """Relays that keep the messages."""


class EnterPlace(Command["Entered | AtDoor | Turned"], frozen=True, gc=False):
    """Enter a place, or connect again."""

    place: TopicId
    contacts: tuple[Contact, ...]
    """The host and relays, from a name or an address; empty: those of the last time."""
    modifiers: tuple[Modifier, ...] = ()
    text: bytes = b""
    """The message at the door."""
    patience: float = 20.0
    waits: bool = True
    """Whether to wait until the host has decided about us; if not, `AtDoor` is the answer at once."""


class LeavePlace(Command["Talked | Done"], frozen=True, gc=False):
    """End the membership, answered by `Talked`, or only disconnect, answered by `Done`.

    A guest that only disconnects is still a guest and comes in again without being asked.
    """

    place: TopicId
    for_good: bool = True


class Admit(Command["Announced"], frozen=True, gc=False):
    """Let a person in who waits at the door."""

    place: TopicId
    nym: AuthorId = field(name="person")
    since: Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)] | None = None
    """The first message that is open to them; None: as the policy says."""


class Reject(Command[Done], frozen=True, gc=False):
    """Turn a person away who waits at the door, with a message or to another place."""

    place: TopicId
    nym: AuthorId = field(name="person")
    method: Method = REFUSAL
    modifiers: Modifiers = ()
    body: bytes = b""
    """The message to the person."""
    text: Words | None = None
    """The body as text, instead of `body`."""
    elsewhere: PlaceAddress | None = None
    """Another place for the person."""

    @property
    def plain(self) -> Reject:
        """The same command, with everything in modifiers and body."""
        named = {} if self.elsewhere is None else {ELSEWHERE: self.elsewhere.text}
        modifiers = (*self.modifiers, *transient(named))
        body = _body(self.body, self.text)
        return replace(self, modifiers=modifiers, body=body, text=None, elsewhere=None)


class Eject(Command["Announced"], frozen=True, gc=False):
    """Put a guest out."""

    place: TopicId
    nym: AuthorId = field(name="person")


class Announce(Command["Announced"], frozen=True, gc=False):
    """Say something to all guests; answered when it is durable here.

    With `more` the message stays open, and `AnnounceMore` brings the rest."""

    place: TopicId
    method: Method = ANNOUNCEMENT
    modifiers: Modifiers = ()
    """The operations on variables, in this order."""
    body: bytes = b""
    reset: bool = False
    """Whether the state begins anew with this message."""
    more: bool = False
    """Whether the message stays open for the rest of its body."""
    text: str | None = None
    """The body as text, instead of `body`."""
    state: Values = field(default_factory=dict)
    """New values of objects of the place, after `modifiers`; an empty value removes the object."""
    added: Values = field(default_factory=dict)
    """Values to add to lists (`_list…`, such as `|bea`) and numbers (`_amount…`, `_counter…`)."""
    taken: Values = field(default_factory=dict)
    """Values to take from lists and numbers."""
    variables: Values = field(default_factory=dict)
    """Variables for this message only."""

    @property
    def plain(self) -> Announce:
        """The same command, with everything in modifiers and body."""
        modifiers = (
            *self.modifiers,
            *assigned(self.state),
            *(Modifier(AUGMENT, name, value.encode()) for name, value in self.added.items()),
            *(Modifier(DIMINISH, name, value.encode()) for name, value in self.taken.items()),
            *transient(self.variables),
        )
        return Announce(
            self.place, self.method, modifiers, _body(self.body, self.text), self.reset, self.more
        )


class AnnounceMore(Command["Announced"], frozen=True, gc=False):
    """Add to the body of an open message, also of one that an earlier run left open."""

    place: TopicId
    message: Number
    body: bytes = b""
    """Empty, with `more`: only ask how much of the message was said."""
    more: bool = True


class TalkTo(Command["Talked"], frozen=True, gc=False):
    """Say something to the host alone; answered when its device has written it down."""

    place: TopicId
    method: Method = REQUEST
    modifiers: Modifiers = ()
    body: bytes = b""
    patience: Patience = 20.0
    text: str | None = None
    """The body as text, instead of `body`."""
    variables: Values = field(default_factory=dict)
    """Variables of the request, after `modifiers`."""

    @property
    def plain(self) -> TalkTo:
        """The same command, with everything in modifiers and body."""
        modifiers = (*self.modifiers, *transient(self.variables))
        return TalkTo(self.place, self.method, modifiers, _body(self.body, self.text), self.patience)


class Look(Command["ObjectsAre"], frozen=True, gc=False):
    """List the objects of a place, in the order of names; also when nobody can be reached."""

    place: TopicId
    name: Keywords = field(default="", name="prefix")
    """Objects whose names begin with these keywords."""
    at: bool = False
    """Whether to list only the object that fits the whole name best, instead of all below it."""


class WatchPlace(Command["Watching"], frozen=True, gc=False):
    """Subscribe to a place: its messages are handed over piece by piece as they come."""

    subscription: int
    place: TopicId
    durable: Annotated[str, Meta(min_length=1, max_length=WATCHER_CHARS)] | None = field(
        default=None, name="name"
    )
    """A name that makes the subscription durable: unacknowledged items come again after a crash."""
    since: Number | None = None
    """The first message to hand over; None: the next one, or the position of a durable subscription."""
    until: Annotated[int, Meta(ge=-1, le=LARGEST_NUMBER)] | None = None
    """The last message, which ends it: history, in order; missing parts are asked for. -1: the newest."""
    offset: Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)] = 0
    """In history: the byte of the first message's body to begin with."""
    methods: Annotated[tuple[Keywords, ...], Commas, Meta(min_length=1, max_length=MAX_METHODS)] | None = None
    """None: all messages. Otherwise it shares the place with other subscriptions that name methods: each
    message goes to those with the most specific name that covers its own; an empty name covers all."""
    objects: Keywords | None = None
    """Hand over changes of objects whose names begin with these keywords; empty: of all; None: of none."""
    door: bool = True
    """Whether to hand over knocks at the door."""
    messages: bool = True
    """Whether to hand over messages at all."""


class ListGuests(Command["GuestsAre"], frozen=True, gc=False):
    """List the guests, and the people who wait at the door."""

    place: TopicId


class ListReceipts(Command["ReceiptsAre"], frozen=True, gc=False):
    """List which guests have a message; for the host and co-hosts."""

    place: TopicId
    message: Number
    """The number of a message."""


class ListPlaces(Command["PlacesAre"], frozen=True, gc=False):
    """List all places of this node."""


class PlaceIs(Struct, frozen=True, gc=False):
    """The status of a place of this node."""

    place: TopicId
    name: str | None
    """The name of the place, from its object `_name`."""
    deed: Deed
    """The owner and the rules of the place."""
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
    variables: int = field(name="objects")
    state: int
    """The last message whose change of state was applied."""
    state_hash: Hex
    locked: int = 0
    """Messages that are here but cannot be read yet: their keys are missing, and asked for."""
    contacts: tuple[Contact, ...] = ()
    """Other devices that are known to be in, and where they may be dialled."""
    speakers: tuple[PeerId, ...] = ()
    """The known devices of the host and the co-hosts."""
    turned: Turned | None = None
    """The last words of the host when it turned us away, until we ask again."""


class PlacesAre(Struct, frozen=True, gc=False):
    """All places of this node."""

    places: tuple[PlaceIs, ...]


class Entered(Struct, frozen=True, gc=False):
    """We are in; the state is up to date, and history from `since` on is open to us."""

    place: TopicId
    since: int


class AtDoor(Struct, frozen=True, gc=False):
    """The host decides who may enter, and knows of us. This node goes on waiting at the door."""

    place: TopicId


class Turned(Struct, frozen=True, gc=False):
    """We were turned away, with these words, which may name another place."""

    place: TopicId
    reason: Reason
    method: str
    modifiers: Modifiers = field(name="variables")
    text: AsText


class Announced(Struct, frozen=True, gc=False):
    """The message is durable here, and on its way."""

    place: TopicId
    message: int
    fragment: int
    """The last fragment of the message so far; -1: none yet."""
    event: EventId | None
    size: int = 0
    """The bytes of its body so far."""


class Talked(Struct, frozen=True, gc=False):
    """The host's device has the request."""

    place: TopicId
    request: int
    voice: PeerId


class PlaceObject(NamedTuple):
    """An object of a place."""

    name: str
    value: bytes


class ObjectsAre(Struct, frozen=True, gc=False):
    """Names and values, in lexical order."""

    place: TopicId
    objects: tuple[PlaceObject, ...]
    state: int
    """The message as of which this is the state."""


class GuestIs(Struct, frozen=True, gc=False):
    """A guest, and how far its receipts go."""

    nym: AuthorId = field(name="person")
    since: int
    """The first message that is open to the guest."""
    upto: int | None
    """The guest has everything below this fragment; None: it gave no receipt yet."""


class GuestsAre(Struct, frozen=True, gc=False):
    """The guests of a place, and the people who wait at its door."""

    place: TopicId
    guests: tuple[GuestIs, ...]
    waiting: tuple[AuthorId, ...]
    said: tuple[str, ...] = ()
    """What each waiting person said at the door."""


class ReceiptIs(Struct, frozen=True, gc=False):
    """Whether a guest has a message."""

    nym: AuthorId = field(name="person")
    state: str
    """`delivered`: it gave a receipt; `pending`: not yet; `closed`: the message is not open to it."""
    at_ms: int | None
    """When the receipt was given, by the guest's own clock."""


class ReceiptsAre(Struct, frozen=True, gc=False):
    """For every present guest whether it has a message, as far as its receipts show."""

    place: TopicId
    message: int
    receipts: tuple[ReceiptIs, ...]


class Watching(Struct, frozen=True, gc=False):
    """Items are handed over from this message on."""

    place: TopicId
    since: int
    resumed: bool = False
    """Whether a durable subscription with this name existed before."""


def assigned(state: Mapping[str, bytes | str | None]) -> tuple[Modifier, ...]:
    """Return modifiers that set objects, or remove those without a value."""
    return tuple(Modifier(ASSIGN, name, as_bytes(value or b"")) for name, value in state.items())


def transient(variables: Mapping[str, bytes | str]) -> tuple[Modifier, ...]:
    """Return modifiers that hold for one message only."""
    return tuple(Modifier(TRANSIENT, name, as_bytes(value)) for name, value in variables.items())


def as_bytes(value: bytes | str) -> bytes:
    """Return a value as bytes, encoding text as UTF-8."""
    return value.encode() if isinstance(value, str) else value


def _body(body: bytes, text: str | None) -> bytes:
    if text is not None and body:
        raise BadText("give a text or a body, one of them")
    return body if text is None else text.encode()
