"""``linnet lab generate chats``: chats like those of WhatsApp."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.lab.options import MasterOption, MemoryOption, OutOption, SeedOption, lab_extra, workshop
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say, say_json, say_table

if TYPE_CHECKING:
    from linnet.lab.generate.job import Generated

EPILOG = examples(
    "linnet lab generate chats --out chats",
    "linnet lab generate chats --chats 1000 --messages 5000000 --seed 7 --out chats",
    "linnet lab generate chats --chats 50 --messages 20000 --granularity s --out few --json",
)


class Granularity(StrEnum):
    """In what times are given."""

    PUBLISHED = "published"
    SECONDS = "s"


Chats = Annotated[int, typer.Option(min=1, max=99_999, help="How many chats.")]
Messages = Annotated[int, typer.Option(min=2, help="Messages in all; everybody in a chat writes one.")]
GranularityOption = Annotated[
    Granularity,
    typer.Option(help="published: 27 % of chats in seconds, the others in minutes; s: all in seconds."),
]


def chats(
    out: OutOption,
    chats: Chats = 5_956,
    messages: Messages = 76_000_000,
    granularity: GranularityOption = Granularity.PUBLISHED,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw chats like those of WhatsApp, by the source-traffic model of Poignée et al. 2025.

    Who writes, when, how much and of what kind is the model's. Ours are the laws of members (42 % of chats
    have two, 83 % at most 30, the largest 252) and of messages per chat (log-normal, sigma 1.43, at
    most two million), and that no chat lasts more than ten years: where it would, pauses above two
    minutes are drawn in. The same seed gives the same data_sha256 on any number of cores.
    """
    with lab_extra():
        from linnet.lab.generate.plan import Granularity as Times
        from linnet.lab.generate.plan import plan_chats

        times = Times(granularity.value)
        plan_chats(chats, messages, times, seed)  # what cannot be is told before Spark starts
    with workshop(out, master, memory, as_json) as made:
        from linnet.lab.generate.job import Wanted, generate

        generated = generate(made, Wanted(chats=chats, messages=messages, granularity=times, seed=seed))
        costs = made.costs
    if as_json:
        say_json(
            {
                "chats": chats,
                "messages": messages,
                "granularity": granularity.value,
                "seed": seed,
                "data_sha256": generated.data_sha256,
                "figures": generated.figures,
                "stages": costs,
            }
        )
        return
    _say(generated)
    for cost in costs:
        again = " (stood already)" if cost.reused else ""
        spent = f"{cost.seconds:.1f} s, {cost.peak_bytes / 2**30:.2f} GiB at most"
        say(f"{out / cost.name}: {cost.rows:,} rows, {spent}{again}")
    say(f"data_sha256: {generated.data_sha256}")


def _say(generated: Generated) -> None:
    rows = [(each.title, each.unit, each.published, each.measured, each.note) for each in generated.figures]
    say_table(("of the chats", "", "published ", "generated ", "note"), rows)
