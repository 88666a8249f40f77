"""What calls raise, for all tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

import pytest

from linnet.core.errors import Refused, RemoteError
from linnet.core.reasons import Reason

P = ParamSpec("P")


def reason_of(
    kind: type[Refused | RemoteError], call: Callable[P, object], *given: P.args, **named: P.kwargs
) -> Reason:
    """Why a call is refused: the reason of the error of this kind that it raises."""
    with pytest.raises(kind) as raised:
        call(*given, **named)
    error = raised.value
    assert isinstance(error, Refused | RemoteError)
    return error.reason
