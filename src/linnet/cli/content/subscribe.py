"""``linnet content subscribe``: print what a predicate accepts."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.content.commands import Via

EPILOG = examples(
    "linnet content subscribe 'stock/apple/price[10,20]'",
    "linnet content subscribe 'quake/strength[5,)/at{36,-10,44,-6}'",
    """linnet content subscribe 'weather/station="LIS"*' --name lisbon --detach""",
    "linnet content subscribe 'stock/price[10,20]' --via fast",
    "linnet content subscribe 'stock/price[10,20]' --at ld1…@192.0.2.7:7700 --group 'stock/price[0,1000]'",
    "linnet content subscribe weather --count 10 --json | jq -r .text",
)

PredicateArgument = Annotated[
    str,
    typer.Argument(metavar="PREDICATE", help="Attributes joined by /: a topic, a range, a text, a box."),
]
Count = Annotated[int | None, typer.Option("--count", metavar="N", min=1, help="End after N.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Keep it: it takes what comes while nobody reads."),
]
Detach = Annotated[bool, typer.Option("--detach", help="Only keep it, and return; needs --name.")]
ViaOption = Annotated[
    Via | None,
    typer.Option(
        "--via",
        help="scout: from anybody; fast: from groups that publishers serve; auto: from both.",
        show_default="scout",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="ADDRESS",
        help="A publisher whose group to be in, also if it is unlisted; by fast, or auto if you say so.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="PREDICATE", help="What that group carries, if it is more than yours."),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.001, help="End after so long; 1 if --count is not reached."
    ),
]


def subscribe(
    predicate: PredicateArgument,
    name: Name = None,
    count: Count = None,
    detach: Detach = False,
    via: ViaOption = None,
    at: At = None,
    group: Group = None,
    timeout: Timeout = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what is said anywhere that a predicate accepts, a line each, until Ctrl-C or enough came.

    An event is accepted if it has every attribute, with a value in the range: price[10,20] has its bounds
    in it, (10,20) has not, [10,) has no upper one.
    """
    from linnet.cli.content.printing import MatchPrinter
    from linnet.cli.running_node import control
    from linnet.content.predicate import MOST_ATTRIBUTES, read_predicate

    read_predicate(predicate, MOST_ATTRIBUTES)
    if detach and (name is None or count is not None):
        raise Failure(
            "--detach keeps a subscription for later: it goes with --name, not --count", ExitCode.USAGE
        )
    if group is not None and at is None:
        raise Failure("--group names a group of a publisher: say where with --at", ExitCode.USAGE)
    if at is not None and via is Via.SCOUT:
        raise Failure("--at is about groups: take --via fast or auto, or none", ExitCode.USAGE)
    way = via or (Via.SCOUT if at is None else Via.FAST)
    with control(home) as node, control(home) as other:
        items = node.subscribe_content(predicate, name, name is not None, way, at, group)
        MatchPrinter(as_json, 0 if detach else count, None if name is None else other).run(items, timeout)
