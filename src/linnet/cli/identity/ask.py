"""``linnet id ask``: a home for one more device of yours, without your key."""

from __future__ import annotations

from linnet.cli.init import Label, Listens, Trackers
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

EPILOG = examples("linnet id ask --label phone", "linnet id ask --label pi --home ~/.linnet-pi")


def ask(
    label: Label = "",
    tracker: Trackers = None,
    listen: Listens = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a home with a device's key alone, and print what your other device needs to link it.

    Your person's key never comes here, so whoever steals this machine can neither make devices in your name
    nor revoke any. Nothing is overwritten.
    """
    from linnet.cli.init import first_config
    from linnet.identity.text import Sort, to_text
    from linnet.node import home as homes

    at = homes.home_path(home)
    device = to_text(Sort.DEVICE, homes.ask(at, first_config(label, tracker, listen)))
    if as_json:
        say_json({"home": str(at), "device": device})
        return
    say(f"home    {at}")
    say(f"device  {device}")
    named = f" --label {label!r}" if label else ""
    say(f"next    on a device that holds your key: linnet id link {device}{named}")
