"""What the parts of the report look at."""

from __future__ import annotations

from linnet.lab.studies.groups.view import NAMES, View


def test_bytes_times_and_growth_are_at_hand(view: View) -> None:
    assert set(view.operations) == set(NAMES)
    assert (view.bytes("update", 8), view.printed("bytes.update.8")) == (2232, 2389)
    assert (view.bytes("update", 9), view.printed("bytes.update.9")) == (None, None)
    growth = view.byte_growth("update")
    assert growth is not None
    assert round(growth.line.slope) == 149 + 63
    assert not growth.is_superlinear
    spent, made = view.cpu("update", 8, "sender"), view.cpu("update", 8, "sender", ("make",))
    assert spent is not None
    assert made is not None
    assert 0 < made < spent
    assert view.cpu_growth("update", "sender") is not None
    assert view.cpu_growth("update", "newcomer") is None
    assert view.printed_growth("bytes.update") is None  # one size of ours is published
