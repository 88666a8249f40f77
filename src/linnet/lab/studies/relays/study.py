"""The study of relays: from messages to a report."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.lab.relays.phones import PhoneTrace
from linnet.lab.report.parts import Report
from linnet.lab.report.published import read_published
from linnet.lab.stages import Made, Workshop, open_table
from linnet.lab.studies.relays import metrics
from linnet.lab.studies.relays.checks import checks
from linnet.lab.studies.relays.parameters import RelaysParameters
from linnet.lab.studies.relays.report import figures, sections
from linnet.lab.studies.relays.run import Attending, outcomes_of
from linnet.lab.studies.relays.sampled import compare_sample, told_of_sample
from linnet.lab.studies.relays.workload import phone_traces, sent
from linnet.lab.tables import INVERSIONS, MESSAGES, OUTCOMES, POOLED, PROFILES, SESSIONS

ABSTRACT = (
    "People are online around what they say, and sender and receiver are seldom online together. Without "
    "relays an event waits at its sender; with relays it waits where the next one to come online finds it.",
    "Every chat is worked out in closed form under one set of rules: integer milliseconds, links that take "
    "no time, relays that are always there and forget nothing. A sample of chats also runs through the "
    "shipped rooms and relays in simulation, and both must agree on every delivery.",
)


def study(workshop: Workshop, parameters: RelaysParameters) -> Report:
    """Work the chats out, or what is still missing of them, and say what came of it."""
    spark = workshop.spark
    messages = open_table(spark, parameters.chats / "messages", MESSAGES)
    sessions = parameters.sessions and open_table(spark, parameters.sessions / "sessions", SESSIONS)
    outcomes = _outcomes(workshop, parameters, messages, sessions or None)
    profiles = workshop.stage(
        "profiles",
        PROFILES,
        lambda: metrics.profiles(outcomes.frame, parameters.filters),
        inputs=[outcomes],
        parameters=parameters.filters._asdict(),
    )
    inputs = [outcomes, profiles]
    pooled = workshop.stage(
        "pooled", POOLED, lambda: metrics.pooled(outcomes.frame, profiles.frame), inputs=inputs
    )
    inverted = workshop.stage(
        "inversions", INVERSIONS, lambda: metrics.inversions(outcomes.frame, profiles.frame), inputs=inputs
    )
    compared = compare_sample(workshop, parameters, messages, profiles) if parameters.sample else None
    return _report(workshop, parameters, pooled, profiles, inverted, compared)


def _outcomes(
    workshop: Workshop, parameters: RelaysParameters, messages: Made, sessions: Made | None
) -> Made:
    phones: Sequence[PhoneTrace] = phone_traces(sessions) if sessions else ()
    attending = Attending(phones, parameters.seed)
    return workshop.stage(
        "outcomes",
        OUTCOMES,
        lambda: outcomes_of(sent(messages.frame), attending),
        inputs=[messages, *([sessions] if sessions else [])],
        parameters={"presence": "phones" if sessions else "margins"},
        seed=parameters.seed if sessions else None,
    )


def _report(
    workshop: Workshop,
    parameters: RelaysParameters,
    pooled: Made,
    profiles: Made,
    inverted: Made,
    compared: Made | None,
) -> Report:
    workshop.tell("report")
    told = [told_of_sample(compared, parameters)] if compared else []
    pool = metrics.read_pool(pooled.frame)
    funnel = {row.step: (row.chats, row.messages) for row in metrics.funnel(profiles.frame).collect()}
    inversions = {(row.population, row.margin): (row.chats, row.inverted) for row in inverted.frame.collect()}
    published = read_published("linnet.lab.studies.relays")
    filters = parameters.filters._asdict()
    return Report(
        study="relays",
        title="What relays change",
        abstract=ABSTRACT,
        parameters={
            "presence": "phones" if parameters.sessions else "five margins for each chat",
            **{name.replace("_", " "): value for name, value in filters.items()},
            "sample": parameters.sample,
            "window": parameters.window,
            "seed": parameters.seed,
        },
        figures=tuple(figures(pool, published, funnel)),
        checks=(*checks(pool), *(check for check, _ in told)),
        sections=(*sections(pool, funnel, inversions), *(section for _, section in told)),
        stages=workshop.costs,
        sources=published.sources,
    )
