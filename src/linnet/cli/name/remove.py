"""``linnet name remove``: take back what your zone says under a label."""

from __future__ import annotations

from linnet.cli.name.options import LabelArgument
from linnet.cli.name.passwords import PasswordFileOption, PasswordOption, read_password
from linnet.cli.name.publish import tell
from linnet.cli.options import HomeOption, JsonOption, examples

EPILOG = examples("linnet name remove music", "linnet name remove club --password-file club.txt")


def remove(
    label: LabelArgument,
    password: PasswordOption = False,
    password_file: PasswordFileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back what your zone says under a label. Whoever looks it up is told so."""
    from linnet.cli.running_node import control
    from linnet.node.name_types import RemoveNameRequest

    secret = read_password(password, password_file)
    with control(home) as node:
        reply = node.remove_name(RemoveNameRequest(label, secret))
    tell(reply, as_json)
