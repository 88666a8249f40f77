"""Deeds: who may speak in a place, and that nobody else can say so."""

from __future__ import annotations

import msgspec
import pytest
from tests.raised import reason_of

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.places.deed import COHOSTS, KEEPERS, PAST, Deed, PastTerm, Policy, check_deed, sign_deed

KEY = SigningKey(b"place..." * 4)
OTHER = SigningKey(b"another." * 4)
HOST, ANN, BEN = (AuthorId(name * 8) for name in (b"host", b"ann.", b"ben."))
KEEPER = Contact(PeerId(b"peer" * 8), ("tls://keeper.example:443",))
DEED = sign_deed(KEY, 3, Policy.CLOSED, HOST, (ANN, BEN), (KEEPER,))


@pytest.mark.parametrize(
    ("policy", "admits", "restricts", "announces"),
    [
        (Policy.ANONYMOUS, False, False, False),
        (Policy.PUBLIC, False, True, True),
        (Policy.CLOSED, True, False, True),
        (Policy.PRIVATE, True, True, True),
    ],
)
def test_the_four_policies(policy: Policy, admits: bool, restricts: bool, announces: bool) -> None:
    assert (policy.admits, policy.restricts, policy.announces) == (admits, restricts, announces)


def test_a_deed_travels_and_is_believed() -> None:
    came = msgspec.msgpack.decode(msgspec.msgpack.encode(DEED), type=Deed)
    assert came == DEED
    assert came.place == KEY.public
    check_deed(came)


@pytest.mark.parametrize(
    "changed",
    [
        {"place": TopicId(OTHER.public)},
        {"version": 4},
        {"policy": Policy.PRIVATE},
        {"host": ANN},
        {"cohosts": (BEN, ANN)},
        {"cohosts": ()},
        {"keepers": ()},
        {"sig": bytes(64)},
        {"past": (PastTerm(2, ANN, EventId(b"o" * 32), 9),)},
    ],
)
def test_a_deed_that_was_altered_is_not_believed(changed: dict[str, object]) -> None:
    assert (
        reason_of(RemoteError, check_deed, msgspec.structs.replace(DEED, **changed)) is Reason.BAD_SIGNATURE
    )


def test_rank_is_the_order_of_the_deed() -> None:
    stranger = AuthorId(b"some" * 8)
    assert [DEED.rank(person) for person in (HOST, ANN, BEN, stranger)] == [0, 1, 2, None]


@pytest.mark.parametrize(
    ("version", "cohosts", "keepers"),
    [
        (0, (), ()),
        (1, (ANN,) * (COHOSTS + 1), ()),
        (1, (), (KEEPER,) * (KEEPERS + 1)),
        (1, (ANN, ANN), ()),
        (1, (HOST,), ()),
    ],
)
def test_a_deed_that_nobody_would_take_is_not_signed(
    version: int, cohosts: tuple[AuthorId, ...], keepers: tuple[Contact, ...]
) -> None:
    with pytest.raises(Refused):
        sign_deed(KEY, version, Policy.PUBLIC, HOST, cohosts, keepers)


@pytest.mark.parametrize(
    ("field", "value"), [(1, -1), (2, "secret"), (3, b"short"), (4, [ANN] * (COHOSTS + 1)), (6, b"")]
)
def test_what_breaks_a_bound_is_no_deed(field: int, value: object) -> None:
    fields = list(msgspec.structs.astuple(DEED))
    fields[field] = value
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=Deed)


def test_a_deed_names_the_terms_of_former_co_hosts_and_no_more_than_it_can() -> None:
    past = PastTerm(2, ANN, EventId(b"o" * 32), 9)
    deed = sign_deed(KEY, 4, Policy.CLOSED, HOST, (BEN,), (), (past,))
    check_deed(deed)
    assert (deed.past_term(past.opening), deed.past_term(EventId(b"p" * 32))) == (past, None)
    assert (deed.rank(ANN), deed.knew(ANN), deed.knew(AuthorId(b"eve." * 8))) == (None, True, False)
    with pytest.raises(Refused):
        sign_deed(KEY, 4, Policy.CLOSED, HOST, (BEN,), (), (past,) * (PAST + 1))
