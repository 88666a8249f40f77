"""Reading ``linnet.toml``. An error names the file, the line and the field, and what is allowed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path as FilePath

import msgspec
from msgspec import inspect

from linnet.core.errors import ConfigError
from linnet.node.config import NodeConfig
from linnet.node.config_problems import path_text, problems_of
from linnet.node.config_types import Problem, problems
from linnet.node.toml_lines import key_lines, line_of

MAX_BYTES = 1024 * 1024
"""Bytes of a configuration: enough for thousands of streams, and read whole."""

MAX_PROBLEMS = 20
"""Problems told at once."""

_PLACE = re.compile(r"^(?P<what>.*) \(at line (?P<line>\d+), column \d+\)$", re.DOTALL)


def load(path: FilePath) -> NodeConfig:
    """The configuration in this file; `ConfigError` tells all that is wrong with it."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_BYTES} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from error
    return parse(text, str(path))


def parse(text: str, name: str = "linnet.toml") -> NodeConfig:
    """The configuration in this text; `name` is what errors call the file."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(text, name, str(error))) from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply") from error
    except ValueError as error:  # a number or date that is TOML but that Python has no value for
        raise ConfigError(f"{name}: {error}") from error
    found = problems(tree, inspect.type_info(NodeConfig), ())
    if found:
        raise ConfigError(_told(text, name, found))
    config = msgspec.convert(tree, NodeConfig)
    found = problems_of(config)
    if found:
        raise ConfigError(_told(text, name, found))
    return config


def _syntax(text: str, name: str, message: str) -> str:
    place = _PLACE.match(message)
    if place:
        return f"{name}:{place['line']}: this is no TOML: {place['what']}"
    return f"{name}:{text.count(chr(10)) + 1}: this is no TOML: {message}"


def _told(text: str, name: str, found: list[Problem]) -> str:
    lines = key_lines(text.replace("\r\n", "\n"))
    told = []
    for problem in found[:MAX_PROBLEMS]:
        line = line_of(lines, problem.path)
        where = name if line is None else f"{name}:{line}"
        told.append(f"{where}: {path_text(problem.path)}: {problem.what}")
    if len(found) > MAX_PROBLEMS:
        told.append(f"{name}: and {len(found) - MAX_PROBLEMS} more")
    return "\n".join(told)
