from __future__ import annotations

import pytest

from linnet.core.errors import BadText, MalformedMessage, Refused, RemoteError, StoreError
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped
from linnet.node.relay_protocol import RelayHttpError, told


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [
        (RemoteError(Reason.BAD_SIGNATURE, "x"), 401, "bad_signature"),
        (MalformedMessage("x"), 400, "malformed"),
        (Refused(Reason.NOT_A_MEMBER, "x"), 403, "not_a_member"),
        (Refused(Reason.SHUTDOWN, "x"), 503, "shutdown"),
        (BadText("x"), 400, "malformed"),
        (DriverStopped("x"), 503, "shutdown"),
        (TimeoutError(), 503, "timeout"),
        (StoreError("disk"), 503, "store"),
        (RelayHttpError("not_json", "x", 415, "y"), 415, "not_json"),
    ],
)
def test_every_error_has_a_status_and_a_word(error: Exception, status: int, word: str) -> None:
    found = told(error)
    assert (found.status, found.reply.error) == (status, word)


def test_a_bug_gives_nothing_away() -> None:
    found = told(KeyError("secret"))
    assert (found.status, found.reason, found.reply.detail) == (500, Reason.BUG, "KeyError")


def test_what_a_room_decides_is_forbidden_and_the_rest_has_its_own_status() -> None:
    for reason in (Reason.BANNED, Reason.NOT_ALLOWED, Reason.NOT_A_RELAY, Reason.INVITATION_EXPIRED):
        assert RelayHttpError(reason, "").status == 403
    found = RelayHttpError(Reason.CURSOR_EXPIRED, "", oldest_cursor="x")
    assert (found.status, found.reply.oldest_cursor, bool(found.reply.hint)) == (410, "x", True)
