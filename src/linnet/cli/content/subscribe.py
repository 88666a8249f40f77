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
    Via,
    typer.Option(
        "--via", help="scout: from anybody; fast: from groups that publishers serve; auto: from both."
    ),
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
    via: ViaOption = Via.SCOUT,
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
    from linnet.content.predicates import MOST_ATTRIBUTES, read_predicate

    read_predicate(predicate, MOST_ATTRIBUTES)
    if detach and (name is None or count is not None):
        raise Failure(
            "--detach keeps a subscription for later: it goes with --name, not --count", ExitCode.USAGE
        )
    with control(home) as node, control(home) as other:
        items = node.subscribe_content(predicate, name, manual=name is not None, via=via)
        MatchPrinter(as_json, 0 if detach else count, None if name is None else other).run(items, timeout)
