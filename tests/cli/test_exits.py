from __future__ import annotations

import pytest

from linnet.api.errors import ControlError, ErrorView, NodeUnreachable
from linnet.cli.exits import ExitCode, Failure, status_and_words
from linnet.core.errors import BadText, ConfigError, LinnetError, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.node.home import HomeBusy, HomeError
from linnet.node.keyfiles import KeyFileError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Failure("lost"), 1),
        (Failure("typed wrongly", ExitCode.USAGE), 2),
        (BadText("no id"), 2),
        (Refused(Reason.TOO_LARGE), 1),
        (StoreError("full"), 1),
        (NodeUnreachable("nobody"), 69),
        (ControlError(409, ErrorView("too_large", "it is")), 1),
        (ControlError(400, ErrorView("bad_request", "it is")), 2),
        (ConfigError("line 3"), 78),
        (HomeError("no home"), 78),
        (HomeBusy("in use"), 78),
        (KeyFileError("mode"), 78),
    ],
)
def test_every_error_has_its_status(error: LinnetError, code: int) -> None:
    assert status_and_words(error) == (code, str(error))


def test_the_hint_of_a_node_is_passed_on() -> None:
    assert (
        status_and_words(ControlError(403, ErrorView("blocked", "by you", "unblock")))[1]
        == "blocked: by you; unblock"
    )
