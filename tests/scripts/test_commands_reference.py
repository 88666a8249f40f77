from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "commands_reference.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("commands_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_says_what_the_commands_say(script: ModuleType) -> None:
    expected = script.page()
    assert script.PAGE.read_text() == expected, "run: python scripts/commands_reference.py"


def test_the_page_does_not_depend_on_the_terminal(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINNET_HOME", "/somewhere/else")
    for words in (("init",), ("room", "create"), ("lab", "study", "content")):
        assert script.section(words) in script.PAGE.read_text()


def test_every_command_is_in_it(script: ModuleType) -> None:
    names = [" ".join(words) for words in script.commands()]
    assert {"init", "up", "publish", "subscribe", "history", "status", "peers", "block", "doctor"} <= set(
        names
    )
    assert {"export", "import", "sim streams", "sim mass-join", "demo", "declare"} <= set(names)
    assert {"lab generate chats", "lab study content", "lab study relays"} <= set(names)
