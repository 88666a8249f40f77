"""Requests to read, as lines that people hand over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.voices import TOPIC
from tests.streams.sealed.hall import Hall
from tests.streams.stage import NOW

from linnet.core.errors import BadText
from linnet.core.ids import TopicId
from linnet.groups.prekeys import bundle_of, make_prekeys
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.sealed.access_request import parse_request, request_text
from linnet.testing.identities import known_identity

BEN, EVE = known_identity("ben"), known_identity("eve")
BUNDLE = bundle_of(make_prekeys(SeededEntropy(1, "request"), NOW, 1))
LINE = request_text(TOPIC, BEN.card, BUNDLE, BEN.device)


def test_it_says_which_stream_which_device_and_how_to_begin() -> None:
    request = parse_request(LINE, NOW)
    assert (request.topic, request.card, request.bundle) == (TOPIC, BEN.card, BUNDLE)
    assert request.reader == (BEN.author, BEN.card.device)
    assert len(LINE) < 1_000
    assert LINE.isalnum()


def test_mail_and_capitals_do_no_harm() -> None:
    broken = "\n".join(LINE[at : at + 60] for at in range(0, len(LINE), 60))
    assert parse_request(f"  {broken.upper()} \n", NOW) == parse_request(LINE, NOW)


def test_a_device_asks_for_itself_alone() -> None:
    for card, key in ((EVE.card, BEN.device), (BEN.card, EVE.device)):
        with pytest.raises(BadText, match="cannot be taken"):
            parse_request(request_text(TOPIC, card, BUNDLE, key), NOW)
    for told in (request_text(TopicId(b"u" * 32), BEN.card, BUNDLE, BEN.device),):
        assert parse_request(told, NOW).topic != TOPIC


def test_a_card_whose_time_is_over_is_told() -> None:
    with pytest.raises(BadText, match="card ended"):
        parse_request(LINE, BEN.card.not_after + 1_000.0)


@given(st.integers(3, len(LINE) - 1), st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"))
def test_a_wrong_letter_is_noticed(at: int, letter: str) -> None:
    if LINE[at] == letter:
        return
    try:
        request = parse_request(LINE[:at] + letter + LINE[at + 1 :], NOW)
    except BadText:
        return
    # Bits behind the last byte say nothing.
    assert at == len(LINE) - 1
    assert request == parse_request(LINE, NOW)


@given(st.integers(0, len(LINE) - 1))
def test_a_cut_line_is_noticed(length: int) -> None:
    with pytest.raises(BadText):
        parse_request(LINE[:length], NOW)


@pytest.mark.parametrize(
    "text", ["", "rain", "li1abc", "lr1", "lr1" + "a" * 5_000, "lr1\u017f\u017f", LINE + "aaaa"]
)
def test_other_text_is_told_what_it_is_not(text: str) -> None:
    with pytest.raises(BadText):
        parse_request(text, NOW)


def test_each_request_has_keys_of_its_own() -> None:
    hall = Hall()
    assert hall.ask("ben").bundle.identity != hall.ask("ben").bundle.identity
