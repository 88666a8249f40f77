"""The deed of a place: whose it is and by which rules, signed by the place's own key."""

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
    """Who comes in, and what of the past is open to them (Toth 2013, table 4.1)."""

    ANONYMOUS = "anonymous"
    """Everyone, unannounced, all history."""
    PUBLIC = "public"
    """Everyone, announced, history from their entry on."""
    CLOSED = "closed"
    """Whom the host admits, all history."""
    PRIVATE = "private"
    """Whom the host admits, history from their entry on."""

    @property
    def admits(self) -> bool:
        """Whether the host decides who comes in."""
        return self in (Policy.CLOSED, Policy.PRIVATE)

    @property
    def seals(self) -> bool:
        """Whether what is said is encrypted for the guests: it is not where everyone may become one."""
        return self.admits

    @property
    def restricts(self) -> bool:
        """Whether history is open from one's own entry on only."""
        return self in (Policy.PUBLIC, Policy.PRIVATE)

    @property
    def announces(self) -> bool:
        """Whether entries are told to all: otherwise nobody knows who is in."""
        return self is not Policy.ANONYMOUS


class PastTerm(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A term of somebody who may speak no longer: so that whoever comes later can still check it."""

    term: Count
    person: WireAuthorId
    opening: WireEventId
    """The fragment that opened it: no other one of that person counts."""
    fragment: Count
    """The last fragment of it that counts."""


class Deed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The newest version counts."""

    place: WireTopicId
    version: Count
    policy: Policy
    host: WireAuthorId
    cohosts: Annotated[tuple[WireAuthorId, ...], Meta(max_length=COHOSTS)]
    """In the order of their rank, behind the host."""
    keepers: Annotated[tuple[Contact, ...], Meta(max_length=KEEPERS)]
    """Relays that keep what is said for guests who are away."""
    sig: WireSignature
    past: Annotated[tuple[PastTerm, ...], Meta(max_length=PAST)] = ()
    """What people said who were co-hosts once, the first term first. Signed with the rest."""

    @property
    def voices(self) -> tuple[AuthorId, ...]:
        """Who may speak, in the order of their rank."""
        return (self.host, *self.cohosts)

    def past_term(self, opening: EventId) -> PastTerm | None:
        """The term that was opened so, if it is one of somebody who may speak no longer."""
        return next((each for each in self.past if each.opening == opening), None)

    def knew(self, person: AuthorId) -> bool:
        """Whether somebody may speak, or could once and did."""
        return self.rank(person) is not None or any(each.person == person for each in self.past)

    def rank(self, person: AuthorId) -> int | None:
        """0: the host; then the co-hosts; None: who may not speak."""
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
    """A deed of the place whose key this is; `Refused` if nobody would take it."""
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
