from __future__ import annotations

import pytest

from linnet.cli.alone import alone_text


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("no_address", "name one with: linnet up --tracker"),
        ("unreachable_inbound", "set listen in linnet.toml on one of them, or run a node that listens"),
        ("something_new", "something_new"),
    ],
)
def test_it_says_what_is_wrong_and_what_to_do(reason: str, words: str) -> None:
    text = alone_text(reason)
    assert text is not None
    assert words in text


def test_where_nothing_is_wrong_nothing_is_said() -> None:
    assert alone_text(None) is None
