"""The study of retention: from messages to a report."""

from __future__ import annotations

from linnet.lab.errors import LabError
from linnet.lab.relays.profile import Filters
from linnet.lab.report.parts import Report
from linnet.lab.report.published import read_published
from linnet.lab.stages import Made, Workshop, open_table
from linnet.lab.studies.relays.metrics import profiles, read_pool
from linnet.lab.studies.relays.run import Attending
from linnet.lab.studies.relays.workload import phone_traces, sent
from linnet.lab.studies.retention.checks import checks
from linnet.lab.studies.retention.metrics import classes_in, pooled, presences_in, trade_of
from linnet.lab.studies.retention.parameters import PresenceBy, RetentionParameters
from linnet.lab.studies.retention.recommending import recommend
from linnet.lab.studies.retention.report import figures, sections
from linnet.lab.studies.retention.run import Presences, retentions_of
from linnet.lab.studies.retention.sweep import name_of, sweep
from linnet.lab.tables import MESSAGES, OUTCOMES, POOLED, PROFILES, SESSIONS

ABSTRACT = (
    "A relay that forgets early fails those who come back late; one that forgets late comes to know what a "
    "server would. How long is long enough depends on who talks how often, and on when people are online.",
    "Every chat is worked out in closed form for every retention: whom relays still serve, which events "
    "nobody ever gets, and for how many hours relays hold them. Each class of rooms is given the "
    "shortest retention that serves nearly all that could be served.",
)


def study(workshop: Workshop, parameters: RetentionParameters) -> Report:
    """Work the chats out, or what is still missing of them, and say what came of it."""
    swept = sweep(parameters.retentions)
    messages = open_table(workshop.spark, parameters.chats / "messages", MESSAGES)
    outcomes = _outcomes(workshop, parameters, messages, swept)
    profiled = workshop.stage(
        "profiles", PROFILES, lambda: profiles(outcomes.frame, Filters()), inputs=[outcomes]
    )
    together = workshop.stage(
        "pooled",
        POOLED,
        lambda: pooled(outcomes.frame, profiled.frame, parameters.lively),
        inputs=[outcomes, profiled],
        parameters={"lively": parameters.lively},
    )
    return _report(workshop, parameters, together, profiled)


def _outcomes(
    workshop: Workshop, parameters: RetentionParameters, messages: Made, swept: tuple[int, ...]
) -> Made:
    """What each retention makes of each chat, at every presence."""
    kinds = [] if parameters.presence is PresenceBy.PHONES else [Attending()]
    inputs = [messages]
    if parameters.sessions is not None:
        sessions = open_table(workshop.spark, parameters.sessions / "sessions", SESSIONS)
        kinds.append(Attending(phone_traces(sessions), parameters.seed))
        inputs.append(sessions)
    return workshop.stage(
        "outcomes",
        OUTCOMES,
        lambda: retentions_of(sent(messages.frame), Presences(tuple(kinds)), swept),
        inputs=inputs,
        parameters={"presence": parameters.presence.value, "retentions": swept},
        seed=parameters.seed if parameters.sessions else None,
    )


def _report(workshop: Workshop, parameters: RetentionParameters, together: Made, profiled: Made) -> Report:
    workshop.tell("report")
    swept = sweep(parameters.retentions)
    pool = read_pool(together.frame)
    classes, margins = classes_in(pool), presences_in(pool)
    if not classes:
        raise LabError("no chat has two members and a pause of more than a second: there is nothing to study")
    trades = [trade_of(pool, population, margin, swept) for margin in margins for population in classes]
    advised = {(trade.population, trade.margin): recommend(trade, parameters.served) for trade in trades}
    published = read_published("linnet.lab.studies.retention")
    left_out = profiled.rows - trades[0].unlimited.rooms.chats
    return Report(
        study="retention",
        title="How long relays should keep events",
        abstract=ABSTRACT,
        parameters={
            "presence": parameters.presence.value,
            "retentions": ", ".join(map(name_of, swept)),
            "relays": ", ".join(map(str, parameters.relays)),
            "served": parameters.served,
            "lively ms": parameters.lively,
            "seed": parameters.seed,
        },
        figures=tuple(figures(trades, advised, published)),
        checks=tuple(checks(pool, trades)),
        sections=tuple(sections(trades, advised, parameters, left_out)),
        stages=workshop.costs,
        sources=published.sources,
    )
