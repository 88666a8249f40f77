"""Which network is meant where none is named."""

from __future__ import annotations

import pytest

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.edge.commands import LanStatus, NetworkStatus
from linnet.node.reports import chosen_network as chosen


def network(name: str, is_here: bool) -> NetworkStatus:
    return NetworkStatus(name.encode() * 32, name, is_here, False, (), 0, ())


def test_the_one_that_we_are_on_is_meant() -> None:
    assert chosen(LanStatus((network("a", False), network("b", True)))).name == "b"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (LanStatus((), is_enabled=False), Reason.UNSUPPORTED),
        (LanStatus((network("a", False),)), Reason.UNREACHABLE),
        (LanStatus((network("a", True), network("b", True))), Reason.TOO_MANY),
    ],
    ids=["off", "none", "two"],
)
def test_none_and_several_are_refused_by_name(status: LanStatus, reason: Reason) -> None:
    with pytest.raises(Refused) as refusal:
        chosen(status)
    assert refusal.value.reason is reason
