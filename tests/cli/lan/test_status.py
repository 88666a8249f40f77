"""How a network is shown to people; real ones are asked in test_switching.py."""

from __future__ import annotations

import pytest

from linnet.cli.lan.status import tell
from linnet.node.lan_types import LanNetworkView, LanPeerView

ID = "3fa0c2d1" + "0" * 56


@pytest.mark.parametrize(
    ("view", "lines"),
    [
        (
            LanNetworkView(ID, "eth0 10.0.0.0/8", True, False, (), 0, ()),
            [
                "3fa0c2d1  eth0 10.0.0.0/8: here, and silent",
                "  nothing is allowed here, so this device does not show itself: linnet lan allow TOPIC",
            ],
        ),
        (
            LanNetworkView(ID, "home", True, True, ("lt1x",), 2, (LanPeerView("ld1y", ()),)),
            ["3fa0c2d1  home: here, and seen", "  allowed: lt1x", "  1 device met, 2 heard", "  ld1y"],
        ),
        (
            LanNetworkView(ID, "", False, False, ("lt1x",), 0, ()),
            ["3fa0c2d1  a network not seen lately: elsewhere", "  allowed: lt1x"],
        ),
    ],
    ids=["silent", "seen", "elsewhere"],
)
def test_what_is_told(view: LanNetworkView, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tell(view)
    assert capsys.readouterr().out.splitlines() == lines
