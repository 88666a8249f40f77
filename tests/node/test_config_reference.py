from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.node.config import NodeConfig, NodeSection, StorageSection, StreamSection, TraceSection
from linnet.node.config_file import parse
from linnet.node.config_reference import Section, new_file, sections, toml_value
from linnet.trace.records import Level

PAGE = Path(__file__).parents[2] / "docs/reference/configuration.md"


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.name)
def test_every_setting_has_a_meaning_and_stands_on_the_page(section: Section) -> None:
    page = PAGE.read_text()
    assert f"## `{section.header}`" in page
    for setting in section.settings:
        assert setting.meaning.endswith("."), f"{section.name}.{setting.name} has no docstring"
        assert f"| `{setting.name}` | `{setting.default_text}` |" in page


def test_the_page_is_up_to_date() -> None:
    # In a process of its own: typing takes equal annotations for one, whose 0 or 0.0 it met first.
    command = [sys.executable, "-m", "linnet.node.config_reference"]
    written = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert PAGE.read_text() == written, "run: python -m linnet.node.config_reference > docs/reference/…"


def test_the_file_of_a_new_home_is_short_changes_nothing_and_says_where_all_is_explained() -> None:
    text = new_file(NodeConfig())
    assert parse(text) == NodeConfig()
    assert len(text.splitlines()) <= 12
    assert str(PAGE.relative_to(PAGE.parents[2])) in text


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.name)
def test_every_section_can_be_put_behind_the_file_of_a_new_home(section: Section) -> None:
    required = "".join(f'{each.name} = "x"\n' for each in section.settings if each.default_text == "required")
    tomllib.loads(f"{new_file(NodeConfig())}\n{section.header.replace('NAME', 'x')}\n{required}")


def test_the_relay_of_the_reference_can_be_put_behind_it() -> None:
    page = PAGE.with_name("relay-http.md").read_text()
    shown = page.split("```toml\n")[1].split("```")[0]
    config = parse(new_file(NodeConfig(node=NodeSection(label="pi"))) + shown)
    assert (config.node.label, config.relay.enabled, config.relay.http) == ("pi", True, "127.0.0.1:8470")


def test_what_was_chosen_is_in_force() -> None:
    config = NodeConfig(
        node=NodeSection(label='a "b"\x7f\n', listen=("wss://127.0.0.1:1",)),
        storage=(StorageSection("one", 1.5), StorageSection("two", None, 7)),
        streams={"my stream": StreamSection(6), 'q"': StreamSection(near=True)},
        trace=TraceSection(level=Level.FULL),
    )
    assert parse(new_file(config)) == config


def test_uncommented_defaults_are_the_defaults() -> None:
    for section in sections():
        for setting in section.settings:
            if setting.default_text not in ("required", "unset"):
                (value,) = tomllib.loads(f"x = {setting.default_text}").values()
                assert msgspec.to_builtins(setting.default) in (
                    value,
                    tuple(value) if value == [] else value,
                ) or (list(msgspec.to_builtins(setting.default)) == value)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_is_written_so_that_it_reads_back(text: str) -> None:
    assert tomllib.loads(f"x = {toml_value(text)}")["x"] == text
