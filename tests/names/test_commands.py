"""What the user asks is never printed with its password."""

from __future__ import annotations

import pytest
from tests.names.people import person

from linnet.names.commands import NamesCommand, PublishName, RemoveName, ResolveName
from linnet.names.derivation import Password, stretch

SECRET = stretch(Password("swordfish"), person("alice").author, "music")


@pytest.mark.parametrize(
    "command",
    [
        PublishName("music", stretched=SECRET),
        RemoveName("music", SECRET),
        ResolveName("music.alice", True, SECRET),
    ],
)
def test_a_password_does_not_show(command: NamesCommand) -> None:
    assert "music" in repr(command)
    assert "swordfish" not in repr(command)
