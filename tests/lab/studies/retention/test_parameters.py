"""Choices that cannot be are told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.retention.parameters import PresenceBy, RetentionParameters

CHATS = Path("chats")


def test_defaults_are_choices() -> None:
    found = RetentionParameters(chats=CHATS)
    assert (found.presence, found.served, found.relays) == (PresenceBy.MARGINS, 0.99, (0, 1, 2, 3))


def test_a_share_is_above_0_and_at_most_1() -> None:
    assert RetentionParameters(chats=CHATS, served=1.0).served == 1.0
    for wrong in (0.0, 1.01):
        with pytest.raises(LabError, match=str(wrong)):
            RetentionParameters(chats=CHATS, served=wrong)


@pytest.mark.parametrize("wrong", [(), (-1, 2), (1, 101)])
def test_numbers_of_relays(wrong: tuple[int, ...]) -> None:
    with pytest.raises(LabError, match="relays"):
        RetentionParameters(chats=CHATS, relays=wrong)


def test_a_border_of_paces_is_no_negative_time() -> None:
    with pytest.raises(LabError, match="-1 ms"):
        RetentionParameters(chats=CHATS, lively=-1)


def test_phones_need_sessions_and_margins_do_not() -> None:
    for presence in (PresenceBy.PHONES, PresenceBy.BOTH):
        RetentionParameters(chats=CHATS, presence=presence, sessions=Path("phones"))
        with pytest.raises(LabError, match="sessions"):
            RetentionParameters(chats=CHATS, presence=presence)
    with pytest.raises(LabError, match="sessions"):
        RetentionParameters(chats=CHATS, sessions=Path("phones"))
