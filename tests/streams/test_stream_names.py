"""Names of streams."""

from __future__ import annotations

import pytest

from linnet.core.errors import BadText
from linnet.core.limits import STREAM_NAME_CHARS
from linnet.identity.text import Sort, to_text
from linnet.streams.stream_names import check_typed, own_name, owner_of, topic_of
from linnet.testing.identities import known_identity

PERSON = known_identity("ann").author
OWNED = to_text(Sort.PERSON, PERSON) + "/news"


def test_a_name_is_a_topic_of_its_own() -> None:
    assert len(topic_of("weather")) == 32
    assert topic_of("weather") == topic_of("weather")
    assert len({topic_of("weather"), topic_of("Weather"), topic_of("weather/1"), topic_of(OWNED)}) == 4


def test_the_person_before_the_slash_is_the_owner() -> None:
    assert owner_of(OWNED) == PERSON
    assert owner_of("weather") is None
    assert owner_of("weather/helsinki") is None
    assert owner_of("person/with/slashes") is None


def test_a_name_that_is_too_short_to_begin_with_an_id_is_an_open_stream() -> None:
    assert owner_of("lp1/news") is None
    assert owner_of(f"lp1{'x' * 40}/news") is None
    with pytest.raises(BadText):
        owner_of(f"lp1{'x' * 41}/news")
    assert owner_of(f"lp1{'x' * 41}") is None, "what belongs to a person has a slash"


@pytest.mark.parametrize(
    "name",
    ["", " weather", "weather ", "a\nb", "a\x00b", "x" * (STREAM_NAME_CHARS + 1), OWNED.replace("/", "x/")],
    ids=["empty", "blank before", "blank after", "line break", "nul", "too long", "mistyped owner"],
)
def test_what_cannot_name_a_stream_is_said(name: str) -> None:
    with pytest.raises(BadText):
        topic_of(name)


@pytest.mark.parametrize(
    "name", ["me", "lp1xx/news", "ld1xx", "lt1xx", to_text(Sort.DEVICE, PERSON), OWNED[:-5]]
)
def test_an_id_or_me_alone_that_somebody_types_is_no_stream(name: str) -> None:
    with pytest.raises(BadText, match="no stream"):
        check_typed(name)
    check_typed("media")
    check_typed(OWNED)


def test_me_stands_for_the_person() -> None:
    assert own_name("me/diary", PERSON) == f"{to_text(Sort.PERSON, PERSON)}/diary"
    assert own_name("weather", PERSON) == "weather"
    assert own_name("me", PERSON) == "me"


def test_the_longest_name() -> None:
    topic_of("x" * STREAM_NAME_CHARS)
