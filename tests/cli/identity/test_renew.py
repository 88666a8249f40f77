from __future__ import annotations

from tests.cli.identity.typed import Typed

from linnet.identity.phrase import to_phrase
from linnet.node.keyfiles import load_card


def test_the_home_that_holds_the_key_renews_at_will(shell: Typed) -> None:
    shell.ok("init", "--label", "laptop")
    first = load_card(shell.home / "device.card")
    shell.ok("id", "renew")
    second = load_card(shell.home / "device.card")
    assert second.not_after >= first.not_after
    assert (second.person, second.device_key, second.label) == (first.person, first.device_key, "laptop")


def test_the_words_of_somebody_else_do_not(shell: Typed) -> None:
    shell.ok("init")
    before = (shell.home / "device.card").read_bytes()
    said = shell.fails(78, "id", "renew", "--phrase-file", "-", given=to_phrase(bytes(32)))
    assert "another person" in said
    assert (shell.home / "device.card").read_bytes() == before
