"""The deed of a place: its owner and its rules, signed by the place's own key."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, msgpack

from linnet.core.errors import Refused
from linnet.core.ids import (
    AuthorId,
    Contact,
    Count,
    EventId,
    TopicId,
    WireAuthorId,
    WireEventId,
    WireSignature,
    WireTopicId,
)
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, verify

COHOSTS = 16
KEEPERS = 8
PAST = 128
_TAG = b"linnet/deed/1"
_encode = msgpack.Encoder().encode


class Policy(StrEnum):
    """Who may enter, and what of the past is open to them (Toth 2013, table 4.1)."""

    ANONYMOUS = "anonymous"
    """Everyone may enter, unannounced, with all history."""
    PUBLIC = "public"
    """Everyone may enter, announced, with history from their entry on."""
    CLOSED = "closed"
    """Only those whom the host admits, with all history."""
    PRIVATE = "private"
    """Only those whom the host admits, with history from their entry on."""

    @property
    def admits(self) -> bool:
        """Whether the host decides who comes in."""
        return self in (Policy.CLOSED, Policy.PRIVATE)

    @property
    def seals(self) -> bool:
        """Whether messages are encrypted for the guests; not where everyone may become a guest."""
        return self.admits

    @property
    def restricts(self) -> bool:
        """Whether history is open only from a guest's own entry on."""
        return self in (Policy.PUBLIC, Policy.PRIVATE)

    @property
    def announces(self) -> bool:
        """Whether entries are announced to all; if not, nobody knows who is in."""
        return self is not Policy.ANONYMOUS


class PastTerm(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A term of a person who may no longer speak, kept so that later guests can still check it."""

    term: Count
    person: WireAuthorId
    opening: WireEventId
    """The fragment that opened the term: no other opening by that person counts."""
    fragment: Count
    """The last fragment of the term that counts."""


class Deed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A deed; the one with the newest version counts."""

    place: WireTopicId
    version: Count
    policy: Policy
    host: WireAuthorId
    cohosts: Annotated[tuple[WireAuthorId, ...], Meta(max_length=COHOSTS)]
    """The co-hosts in the order of their rank, below the host."""
    keepers: Annotated[tuple[Contact, ...], Meta(max_length=KEEPERS)]
    """The relays that keep the messages for guests who are away."""
    sig: WireSignature
    past: Annotated[tuple[PastTerm, ...], Meta(max_length=PAST)] = ()
    """The terms of former co-hosts, the first term first. Signed with the rest."""

    @property
    def voices(self) -> tuple[AuthorId, ...]:
        """The people who may speak, in the order of their rank."""
        return (self.host, *self.cohosts)

    def past_term(self, opening: EventId) -> PastTerm | None:
        """Return the term with this opening, if its speaker may no longer speak."""
        return next((each for each in self.past if each.opening == opening), None)

    def knew(self, person: AuthorId) -> bool:
        """Return whether a person may speak, or spoke when they still could."""
        return self.rank(person) is not None or any(each.person == person for each in self.past)

    def rank(self, person: AuthorId) -> int | None:
        """Return a person's rank: 0 for the host, then the co-hosts; None: the person may not speak."""
        voices = self.voices
        return voices.index(person) if person in voices else None


def sign_deed(
    key: SigningKey,
    version: int,
    policy: Policy,
    host: AuthorId,
    cohosts: tuple[AuthorId, ...] = (),
    keepers: tuple[Contact, ...] = (),
    past: tuple[PastTerm, ...] = (),
) -> Deed:
    """Return a signed deed of the place with this key; `Refused` if nobody would accept it."""
    if version < 1:
        raise Refused(Reason.MALFORMED, "versions of a deed are counted from 1: 0 says that there is none")
    if len(cohosts) > COHOSTS or len(keepers) > KEEPERS:
        raise Refused(Reason.TOO_MANY, f"at most {COHOSTS} co-hosts and {KEEPERS} keepers")
    if len(past) > PAST:
        raise Refused(Reason.TOO_MANY, f"former co-hosts opened more than {PAST} terms")
    if len(dict.fromkeys((host, *cohosts))) != 1 + len(cohosts):
        raise Refused(Reason.DUPLICATE, "a person has one rank only")
    fields = (TopicId(key.public), version, policy, host, cohosts, keepers)
    return Deed(*fields, key.sign(_TAG + _encode((*fields, past))), past)


def check_deed(deed: Deed) -> None:
    """Raise `RemoteError` unless the place's key signed it."""
    fields = (deed.place, deed.version, deed.policy, deed.host, deed.cohosts, deed.keepers, deed.past)
    verify(deed.place, _TAG + _encode(fields), deed.sig)
