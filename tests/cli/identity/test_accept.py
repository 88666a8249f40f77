from __future__ import annotations

from tests.cli.identity.typed import Typed

from linnet.identity.card_text import card_to_text
from linnet.node.keyfiles import load_card


def test_a_card_is_accepted_twice_without_harm(shell: Typed) -> None:
    found = shell.json("init")
    card = load_card(shell.home / "device.card")
    assert shell.json("id", "accept", card_to_text(card)) == found
    assert load_card(shell.home / "device.card") == card
