from __future__ import annotations

import pytest
from tests.cli.shell import Linnet

from linnet.cli.running_node import stream_name
from linnet.core.errors import BadText
from linnet.node.home import HomeError


def test_own_streams_are_named_for_their_person(shell: Linnet) -> None:
    person = shell.json("init")["person"]
    assert stream_name("me/diary", shell.home) == f"{person}/diary"
    assert stream_name("weather", shell.home) == "weather"
    assert stream_name("men/diary", shell.home) == "men/diary"


def test_without_a_home_nobody_is_me(shell: Linnet) -> None:
    with pytest.raises(HomeError, match="linnet init"):
        stream_name("me/diary", shell.home)
    with pytest.raises(BadText):
        stream_name("", shell.home)
