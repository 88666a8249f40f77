from __future__ import annotations

import inspect

import pytest

from linnet.core import errors
from linnet.core.errors import (
    InvalidEvent,
    MalformedMessage,
    Refused,
    RemoteError,
)
from linnet.core.reasons import Reason


def test_the_tree_is_the_one_that_is_drawn() -> None:
    """Each class stands below its base in the picture at the top of the module."""
    picture = errors.__doc__ or ""
    depth = {
        line.strip("│├└─ ").split()[0]: len(line) - len(line.lstrip("│├└─ "))
        for line in picture.splitlines()
        if line.startswith("    ")
    }
    classes = {
        name: kind
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if kind.__module__ == errors.__name__
    }
    assert set(depth) == set(classes)
    for name, kind in classes.items():
        base = kind.__mro__[1].__name__
        assert base == "Exception" or depth[base] == depth[name] - 4


@pytest.mark.parametrize(
    "error",
    [
        Refused(Reason.TOO_LARGE, "300 bytes"),
        RemoteError(Reason.TOO_LARGE, "300 bytes"),
        InvalidEvent(Reason.TOO_LARGE, "300 bytes"),
        MalformedMessage("300 bytes", Reason.TOO_LARGE),
    ],
)
def test_errors_carry_their_reason_and_say_it(error: Refused | RemoteError) -> None:
    assert error.reason is Reason.TOO_LARGE
    assert error.detail == "300 bytes"
    assert str(error) == "too_large: 300 bytes"


def test_a_reason_may_speak_for_itself() -> None:
    assert str(Refused(Reason.BLOCKED)) == "blocked"
    assert str(RemoteError(Reason.BLOCKED)) == "blocked"


def test_a_message_is_malformed_unless_told_otherwise() -> None:
    assert MalformedMessage("what is this").reason is Reason.MALFORMED
