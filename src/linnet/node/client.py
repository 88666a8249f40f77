"""Talking to a running node from another process of the same machine, by its control API.

::

    with ControlClient(home) as control:
        control.ask(Publish("weather", (b"rain",)))
        for item in control.lines(Subscribe(0, "weather", since=0)):
            ...
"""

from __future__ import annotations

from pathlib import Path

from linnet.api.client import Remote
from linnet.api.errors import ControlError, NodeUnreachable
from linnet.core.errors import ConfigError
from linnet.node import config_file
from linnet.node.config import ControlSection
from linnet.node.home import Home, HomeError, home_path

__all__ = ["ControlClient", "ControlError", "NodeUnreachable", "control_socket"]


def control_socket(home: Home) -> Path:
    """Return the path of a home's control socket, as its configuration says."""
    try:
        control = config_file.load(home.config).control
    except ConfigError:
        if home.config.exists():
            raise
        control = ControlSection()
    try:
        return home.socket(control)
    except HomeError as error:
        raise NodeUnreachable(str(error)) from error


class ControlClient(Remote):
    """A caller of the control API; close it, or use it as a context."""

    def __init__(self, home: Path | None = None, url: str | None = None, token: str | None = None) -> None:
        """Connect to the node of a home, or to one at a loopback address with its token."""
        super().__init__(control_socket(Home(home_path(home))) if url is None else None, url, token)
