"""The command line: commands by subject, over the control API of a running node.

Nothing heavy is imported before it is needed: ``linnet --help`` and shell completion start fast.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of ``linnet``."""
    from linnet.cli.app import app

    app()
