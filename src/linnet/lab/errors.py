"""What goes wrong in the lab because of what it was given."""

from __future__ import annotations

from linnet.core.errors import LocalError


class LabError(LocalError):
    """A source, a folder or a parameter is not what the lab needs; the message says what to do."""


class CheckFailed(LocalError):
    """A study ran to its end, and something that must hold does not."""
