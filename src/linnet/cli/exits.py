"""How a command ends: its status, and one line for what went wrong with the next step in it."""

from __future__ import annotations

from enum import IntEnum

from linnet.core.errors import BadText, ConfigError, LinnetError


class ExitCode(IntEnum):
    """What a shell is told. 69 and 78 are those of sysexits.h."""

    OK = 0
    FAILED = 1
    """It was tried and did not work, was declined, or something was lost."""
    USAGE = 2
    NO_NODE = 69
    CONFIGURATION = 78
    INTERRUPTED = 130


EXIT_CODES = "Exit status: 0 done, 1 failed or lost, 2 wrong usage, 69 no node runs, 78 wrong configuration."
"""What every command's help ends with."""


class Failure(LinnetError):
    """A command cannot go on; the message names the next step."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


def status_and_words(error: LinnetError) -> tuple[ExitCode, str]:
    """How an error is told to the shell and to people."""
    # Imported late: whoever raised one of these has imported it already.
    from linnet.node.client import ControlError, NodeUnreachable
    from linnet.node.home import HomeError
    from linnet.node.keyfiles import KeyFileError

    match error:
        case Failure():
            return error.code, str(error)
        case NodeUnreachable():
            return ExitCode.NO_NODE, str(error)
        case ControlError():
            # The node checks what was typed as well, and says so by this status.
            code = ExitCode.USAGE if error.reason == "bad_request" else ExitCode.FAILED
            return code, f"{error}; {error.hint}" if error.hint else str(error)
        case ConfigError() | HomeError() | KeyFileError():
            return ExitCode.CONFIGURATION, str(error)
        case BadText():
            return ExitCode.USAGE, str(error)
        case _:
            return ExitCode.FAILED, str(error)
