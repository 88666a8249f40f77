from __future__ import annotations

import pytest

from linnet.api.errors import ApiError, length_in_words, told
from linnet.core.errors import BadText, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (ApiError(418, "teapot", "short"), 418, "teapot"),
        (BadText("no id"), 400, "bad_request"),
        (Refused(Reason.TOO_LARGE, "x"), 413, "too_large"),
        (Refused(Reason.NOT_A_PUBLISHER, "x"), 403, "not_a_publisher"),
        (Refused(Reason.QUEUE_FULL, "x"), 503, "queue_full"),
        (Refused(Reason.STALE, "x"), 409, "stale"),
        (DriverStopped("gone"), 503, "shutdown"),
        (StoreError("disk full"), 503, "store"),
        (ValueError("a secret path"), 500, "bug"),
    ],
)
def test_each_error_has_a_status_and_a_reason(error: Exception, status: int, reason: str) -> None:
    found, reply = told(error)
    assert (found, reply.error.reason) == (status, reason)


@pytest.mark.parametrize("reason", Reason)
def test_no_reason_of_the_node_is_a_bug_of_the_api(reason: Reason) -> None:
    assert told(Refused(reason, "x"))[0] in (400, 403, 404, 409, 413, 429, 503)


def test_a_bug_gives_nothing_away() -> None:
    assert "secret" not in str(told(ValueError("a secret path"))[1])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("Expected `str` of length <= 200 - at `$.name`", "the name is too long: at most 200 characters"),
        ("Expected `str` of length >= 1 - at `$.name`", "the name is too short: at least 1 character"),
        ("Expected `array` of length <= 64 - at `$.creators`", "creators: at most 64"),
        ("Expected `array` of length >= 1 - at `$.texts`", "texts: at least 1"),
        ("Object contains unknown field `x`", "Object contains unknown field `x`"),
    ],
)
def test_lengths_are_told_in_words(raw: str, words: str) -> None:
    assert length_in_words(raw) == words
