"""From a few numbers to tables of chats: draw, write, count what was written, hold it against the data."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.errors import CheckFailed
from linnet.lab.generate import facts
from linnet.lab.generate.marks import data_sha256, figures
from linnet.lab.generate.measure import CHATS, measured_chats
from linnet.lab.generate.plan import Granularity, plan_chats
from linnet.lab.generate.rows import messages_of
from linnet.lab.report.parts import Figure
from linnet.lab.stages import Made, Workshop
from linnet.lab.tables import MESSAGES


class Wanted(Struct, frozen=True, kw_only=True):
    """What to generate."""

    chats: int = facts.CHATS
    messages: int = facts.MESSAGES
    granularity: Granularity = Granularity.PUBLISHED
    seed: int = 1


class Generated(Struct, frozen=True, kw_only=True):
    """What was generated."""

    messages: Made
    chats: Made
    figures: tuple[Figure, ...]
    data_sha256: str
    """Over the names and hashes of all chats, in order; the same for the same seed, however it was made."""


def generate(workshop: Workshop, wanted: Wanted) -> Generated:
    """Make the tables ``messages`` and ``chats``; nothing is done if they stand."""
    plans = plan_chats(wanted.chats, wanted.messages, wanted.granularity, wanted.seed)
    messages = workshop.stage(
        "messages",
        MESSAGES,
        lambda: messages_of(workshop.spark, plans, wanted.seed),
        parameters={
            "chats": wanted.chats,
            "messages": wanted.messages,
            "granularity": wanted.granularity.value,
        },
        seed=wanted.seed,
    )
    chats = workshop.stage("chats", CHATS, lambda: measured_chats(messages.frame), inputs=[messages])
    rows = chats.frame.orderBy("chat").collect()  # as many as there are chats
    found = [(row.chat, row.members, row.messages, row.granularity) for row in rows]
    if found != [(plan.name, plan.members, plan.messages, plan.granularity) for plan in plans]:
        raise CheckFailed(
            f"the chats in {workshop.out} are not those that were planned: delete it, run again"
        )
    return Generated(
        messages=messages, chats=chats, figures=tuple(figures(rows)), data_sha256=data_sha256(rows)
    )
