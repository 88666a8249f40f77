"""The commands about names with a password, which the node stretches before its machine is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeVar

from msgspec import Meta

from linnet.core.ids import AuthorId, Contact, TopicId
from linnet.machine.commands import Command
from linnet.names.address import ADDRESS_CHARS
from linnet.names.commands import NotResolved, Published, Resolved
from linnet.names.derivation import PASSWORD_BYTES
from linnet.names.records import CONTACTS

R_co = TypeVar("R_co", covariant=True)
Label = Annotated[str, Meta(min_length=1, max_length=256)]
PasswordText = Annotated[str, Meta(min_length=1, max_length=PASSWORD_BYTES)]


class PublishLabel(Command[Published], frozen=True, gc=False):
    """Publish under a label of our zone where a place is, or the zone that continues there, or both."""

    label: Label
    place: TopicId | None = None
    contacts: Annotated[tuple[Contact, ...], Meta(max_length=CONTACTS)] = ()
    """Peers at which the place can be entered; none: this node."""
    zone: AuthorId | None = None
    """The person whose zone continues there."""
    lifetime: Annotated[float, Meta(ge=0)] | None = None
    """Seconds; null: as configured; 0: remove it."""
    renew: bool = True
    """Whether it is signed again in time while the node runs."""
    password: PasswordText | None = None
    """The password that is needed to find and read it."""

    def __repr__(self) -> str:
        return _hidden(self)

    def __rich_repr__(self) -> Iterator[str]:  # type: ignore[override]
        yield "…"


class WithdrawLabel(Command[Published], frozen=True, gc=False):
    """Withdraw a label of our zone."""

    label: Label
    password: PasswordText | None = None
    """The password with which it was published."""

    def __repr__(self) -> str:
        return _hidden(self)

    def __rich_repr__(self) -> Iterator[str]:  # type: ignore[override]
        yield "…"


class LookUpAddress(Command[Resolved | NotResolved], frozen=True, gc=False):
    """Resolve an address, and tell by whose records; that it leads nowhere is an answer as well."""

    address: Annotated[str, Meta(min_length=1, max_length=ADDRESS_CHARS)]
    password: PasswordText | None = None
    """The password of its first label."""

    def __repr__(self) -> str:
        return _hidden(self)

    def __rich_repr__(self) -> Iterator[str]:  # type: ignore[override]
        yield "…"


def _hidden(command: Command[object]) -> str:
    """Return a command as text without its password."""
    return f"{type(command).__name__}(…)"
