"""What cells hold, in words, and what a node can do without."""

from __future__ import annotations

import pytest

from linnet.core.spaces import count_by_words, is_expendable, is_needed, kind_of, words_for

TOPIC = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (f"group.text/{TOPIC}", "group.text"),
        (f"due {TOPIC} my reader", "due"),
        (f"place state index {TOPIC}", "place state index"),
        ("place fragment", "place fragment"),
    ],
)
def test_a_kind_is_a_space_without_its_topic(space: str, kind: str) -> None:
    assert kind_of(space) == kind


def test_what_nobody_listed_is_needed_and_named_as_it_is() -> None:
    assert is_needed("something new")
    assert not is_expendable("something new")
    assert words_for("something new") == "something new"
    assert words_for(f"place orphan {TOPIC}") == "state of places"


def test_keys_and_ends_of_chains_are_needed() -> None:
    for space in (
        f"group.state/{TOPIC}",
        f"tip {TOPIC}",
        "sealed owning",
        "place key",
        "cursor",
        "revocation",
    ):
        assert is_needed(space)
        assert not is_expendable(space)
    assert not is_needed(f"group.text/{TOPIC}")
    assert not is_expendable(f"group.text/{TOPIC}")


def test_counts_come_with_their_words_the_most_first() -> None:
    spaces = ["trust", f"group.text/{TOPIC}", f"group.text/{TOPIC[::-1]}"]
    assert count_by_words(spaces) == "2 of texts of encrypted rooms, 1 of trust in peers"
