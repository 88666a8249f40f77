from __future__ import annotations

import base64

import pytest
from msgspec import msgpack

from linnet.core.errors import BadText
from linnet.identity import cards
from linnet.identity.cards import PREFIX, card_from_text, card_to_text, issue_card
from linnet.identity.keys import SigningKey

PERSON, DEVICE = SigningKey(bytes(32)), SigningKey(b"d" * 32)
CARD = issue_card(PERSON, DEVICE.public, 1, 2, "küche")


def test_it_survives_capitals_spaces_and_lines() -> None:
    text = card_to_text(CARD)
    assert card_from_text(text) == CARD
    broken = " ".join(text[at : at + 7].upper() for at in range(0, len(text), 7))
    assert card_from_text(f" {broken}\n") == CARD


def test_every_change_of_one_letter_and_every_missing_end_is_noticed() -> None:
    text = card_to_text(CARD)
    for place in range(len(PREFIX), len(text)):
        other = "a" if text[place] != "a" else "b"
        # The last letter may hold nothing but padding.
        changed = text[:place] + other + text[place + 1 :]
        try:
            assert card_from_text(changed) == CARD
            assert place == len(text) - 1
        except BadText:
            pass
        with pytest.raises(BadText):
            card_from_text(text[:place])


@pytest.mark.parametrize("text", ["", "lp1abc", "lc1", "lc1é", "lc1" + "a" * 2000, "lc1aaaaaaaa"])
def test_what_is_no_card(text: str) -> None:
    with pytest.raises(BadText, match="card"):
        card_from_text(text)


def test_a_card_whose_label_is_no_text_is_refused_in_words() -> None:
    """Found by `tests.fuzz`: it has a good checksum, as anybody can make one."""
    payload = msgpack.encode((bytes(32), bytes(32), 0, 1, "label", bytes(64))).replace(b"label", b"lab\xffl")
    letters = base64.b32encode(payload + cards._checksum(payload)).decode().rstrip("=").lower()
    with pytest.raises(BadText, match="this is no card"):
        card_from_text(cards.PREFIX + letters)
