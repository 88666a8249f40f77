"""The end of commands: the exit status, and one line about the error with the next step."""

from __future__ import annotations

from enum import IntEnum

from linnet.core.errors import BadText, ConfigError, LinnetError


class ExitCode(IntEnum):
    """The exit statuses. 69 and 78 are those of sysexits.h."""

    OK = 0
    FAILED = 1
    """The command was tried and failed, was declined, or lost something."""
    USAGE = 2
    NO_NODE = 69
    CONFIGURATION = 78
    INTERRUPTED = 130


EXIT_CODES = "Exit status: 0 done, 1 failed or lost, 2 wrong usage, 69 no node runs, 78 wrong configuration."
"""The end of every command's help."""


class Failure(LinnetError):
    """A command cannot go on; the message names the next step."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


def status_and_words(error: LinnetError) -> tuple[ExitCode, str]:
    """Return the exit status of an error, and its words for people."""
    # Imported late: a caller that raised one of these has imported it already.
    from linnet.node.client import ControlError, NodeUnreachable
    from linnet.node.home import HomeError
    from linnet.node.keyfiles import KeyFileError

    match error:
        case Failure():
            return error.code, str(error)
        case NodeUnreachable():
            return ExitCode.NO_NODE, str(error)
        case ControlError():
            # The node checks typed input as well, and reports errors in it by this reason.
            code = ExitCode.USAGE if error.reason == "bad_request" else ExitCode.FAILED
            return code, f"{error}; {error.hint}" if error.hint else str(error)
        case ConfigError() | HomeError() | KeyFileError():
            return ExitCode.CONFIGURATION, str(error)
        case BadText():
            return ExitCode.USAGE, str(error)
        case _:
            return ExitCode.FAILED, str(error)
