"""The documentation of the configuration: its reference page, and the file of a new home.

Both are made from the types and the docstrings below their fields. ``python -m linnet.node.config_reference >
docs/reference/configuration.md`` writes the page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import Enum
from typing import cast

from msgspec import NODEFAULT, Struct, inspect

from linnet.api.field_docs import field_docs
from linnet.node.config import NodeConfig
from linnet.node.config_problems import allowed

_HEADERS = {"storage": "[[storage]]", "streams": '[streams."NAME"]'}

_INTRODUCTION = """\
# Configuration

A node reads `linnet.toml` in its home directory (`LINNET_HOME`, else `~/.linnet`) when it starts.
`linnet init` writes a short one, in which only what was chosen is set; what is not there has its default.
A wrong or unknown setting stops the start with a message that names the file, the line, the field and what
is allowed:

    linnet.toml:3: node.labl: there is no such setting; did you mean label?

Nothing listens beyond this machine unless `node.listen_wide` or `lan.enabled` says so. Durations are in
seconds, sizes in bytes.

This page is written by `python -m linnet.node.config_reference` from the types themselves.
"""


class Setting(Struct, frozen=True):
    """One field of the configuration."""

    name: str
    kind: inspect.Type
    default: object
    """The default; `NODEFAULT` if the setting must be given."""
    meaning: str

    @property
    def default_text(self) -> str:
        """The default as TOML, or a word where there is none."""
        if self.default is NODEFAULT:
            return "required"
        return "unset" if self.default is None else toml_value(self.default)


class Section(Struct, frozen=True):
    """One table of the configuration."""

    name: str
    header: str
    meaning: str
    settings: tuple[Setting, ...]


def sections() -> tuple[Section, ...]:
    """Return all tables of the configuration, in order."""
    return tuple(
        _section(field.name, _table(field.type)) for field in _table(inspect.type_info(NodeConfig)).fields
    )


def reference() -> str:
    """Return the text of `docs/reference/configuration.md`."""
    parts = [_INTRODUCTION]
    for section in sections():
        parts.append(f"## `{section.header}`\n\n{section.meaning}\n")
        parts.append("| Setting | Default | Allowed | Meaning |\n|---|---|---|---|")
        parts += [
            f"| `{setting.name}` | `{setting.default_text}` | {allowed(setting.kind)} | {setting.meaning} |"
            for setting in section.settings
        ]
        parts.append("")
    return "\n".join(parts)


_NEW_FILE = """\
# The configuration of this Linnet node: what is not said here has its default.
# Every setting is explained in docs/reference/configuration.md, which this prints as well:
#   python -m linnet.node.config_reference
# Settings stand below the name of their section, which is there once; for example:
#
#   [node]
#   listen = ["tls://0.0.0.0:7700"]   # let others dial this node, at a port that stays
#   listen_wide = true                # other machines as well
#   trackers = ["ld1...@192.0.2.7:7700"]
"""


def new_file(config: NodeConfig) -> str:
    """Return the text of a new ``linnet.toml``: a few words, and the settings that are not default."""
    parts = [_NEW_FILE]
    for section in sections():
        for header, table in _tables(config, section):
            settings = "".join(_in_force(section, table))
            if settings or section.name in _HEADERS:
                parts.append(f"\n{header}\n{settings}")
    return "".join(parts)


def toml_value(value: object) -> str:
    """Return a value in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return toml_value(value.value)
    if isinstance(value, str):
        # JSON's escapes are TOML's as well, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return str(value)


def _tables(config: NodeConfig, section: Section) -> list[tuple[str, Struct]]:
    """Return the tables of a section in a configuration, each with its header."""
    if section.name == "storage":
        return [("[[storage]]", rule) for rule in config.storage]
    if section.name == "streams":
        return [(f"[streams.{toml_value(name)}]", stream) for name, stream in config.streams.items()]
    return [(section.header, getattr(config, section.name))]


def _in_force(section: Section, table: Struct) -> Iterator[str]:
    for setting in section.settings:
        value = getattr(table, setting.name)
        if value != setting.default and value is not None:
            yield f"{setting.name} = {toml_value(value)}\n"


def _table(kind: inspect.Type) -> inspect.StructType:
    if isinstance(kind, inspect.VarTupleType):
        kind = kind.item_type
    if isinstance(kind, inspect.DictType):
        kind = kind.value_type
    return cast(inspect.StructType, kind)


def _section(name: str, table: inspect.StructType) -> Section:
    words = field_docs(table.cls)
    settings = tuple(
        Setting(field.name, field.type, field.default, words.get(field.name, "")) for field in table.fields
    )
    # A subclass lists what it adds last; the switch of a section reads best first.
    settings = tuple(sorted(settings, key=lambda setting: setting.name != "enabled"))
    meaning = " ".join((table.cls.__doc__ or "").split())
    return Section(name, _HEADERS.get(name, f"[{name}]"), meaning, settings)


if __name__ == "__main__":
    sys.stdout.write(reference())
