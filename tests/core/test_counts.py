from __future__ import annotations

from linnet.core.counts import counted


def test_nouns_are_counted() -> None:
    assert [counted(n, "link") for n in (0, 1, 2000)] == ["0 links", "1 link", "2,000 links"]
    assert [counted(n, "branch", "branches") for n in (1, 2)] == ["1 branch", "2 branches"]
