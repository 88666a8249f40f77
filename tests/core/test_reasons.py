from __future__ import annotations

from linnet.core.reasons import Reason


def test_reasons_are_their_names_in_small_letters() -> None:
    assert all(reason.value == reason.name.lower() for reason in Reason)
    assert all(str(reason) == reason.value for reason in Reason)


def test_reasons_fit_a_column_and_a_message() -> None:
    assert all(3 <= len(reason) <= 24 and reason.isascii() for reason in Reason)
