"""The stages of an audit, in order; each makes one table of `linnet.lab.tables`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from pyspark.sql import DataFrame

from linnet.lab.audit.activity import (
    activity_of,
    begins_of,
    chains_of,
    links_of,
    nodes_of,
    signs_of,
    tally_of,
)
from linnet.lab.audit.completeness import completeness_of
from linnet.lab.audit.delays import delays_of, timed_of
from linnet.lab.audit.events import arrivals_of, has_bursts, hops_of, publications_of
from linnet.lab.audit.excuses import excuses_of
from linnet.lab.audit.fates import fates_of, missing_pairs, unserved
from linnet.lab.audit.quantiles import quantiles_of
from linnet.lab.audit.quarantine import quarantine_of
from linnet.lab.audit.readers import readers_of, sessions_of, switches_of
from linnet.lab.audit.reading import table_rows, trace_rows
from linnet.lab.audit.sources import Sources
from linnet.lab.manifest import Origin
from linnet.lab.stages import Made, Workshop, file_input, schema_of
from linnet.lab.tables import (
    AUDIT_ACTIVITY,
    AUDIT_ARRIVALS,
    AUDIT_CHAINS,
    AUDIT_COMPLETENESS,
    AUDIT_DELAYS,
    AUDIT_HOPS,
    AUDIT_LINKS,
    AUDIT_MISSING,
    AUDIT_NODES,
    AUDIT_PUBLICATIONS,
    AUDIT_QUANTILES,
    AUDIT_READERS,
    AUDIT_SIGNS,
    AUDIT_TALLY,
    AUDIT_UNSERVED,
    QUARANTINE,
    TRACE,
    Table,
)


class Parameters(Struct, frozen=True, kw_only=True):
    """What may be chosen in an audit."""

    grace_ms: int = 10_000
    """How long an event may take before a reader whose trace goes on is said to lack it."""
    skew_ms: int = 10
    """How far a delivery may lie before its publication until clocks are said to differ."""


class Tables(Struct, frozen=True):
    """What the stages made."""

    nodes: Made
    activity: Made
    links: Made
    chains: Made
    publications: Made
    readers: Made
    delays: Made
    hops: Made
    missing: Made
    completeness: Made
    quantiles: Made
    quarantine: Made | None


def run_stages(workshop: Workshop, sources: Sources, parameters: Parameters) -> Tables:
    """Make every table that does not stand yet."""
    trace, origins, quarantine = _trace(workshop, sources)
    stage = _Stages(workshop, origins)
    signs = stage(AUDIT_SIGNS, lambda: signs_of(trace))
    tally = stage(AUDIT_TALLY, lambda: tally_of(trace, begins_of(signs.frame)), signs)
    nodes = stage(AUDIT_NODES, lambda: nodes_of(tally.frame, begins_of(signs.frame)), tally)
    activity = stage(AUDIT_ACTIVITY, lambda: activity_of(tally.frame, nodes.frame), tally, nodes)
    links = stage(AUDIT_LINKS, lambda: links_of(signs.frame, nodes.frame), signs, nodes)
    chains = stage(AUDIT_CHAINS, lambda: chains_of(activity.frame), activity)
    readers = stage(
        AUDIT_READERS,
        lambda: readers_of(activity.frame, nodes.frame, switches_of(signs.frame, nodes.frame)),
        activity,
    )
    publications = stage(
        AUDIT_PUBLICATIONS, lambda: publications_of(signs.frame, chains.frame, nodes.frame), signs, chains
    )
    arrivals = stage(
        AUDIT_ARRIVALS,
        lambda: arrivals_of(trace, chains.frame, nodes.frame, publications.frame, has_bursts(activity.frame)),
        publications,
    )

    def timed() -> DataFrame:
        return timed_of(arrivals.frame, chains.frame, readers.frame)

    delays = stage(AUDIT_DELAYS, lambda: delays_of(timed()), arrivals, readers)
    hops = stage(AUDIT_HOPS, lambda: hops_of(arrivals.frame, chains.frame), arrivals)
    lacking = stage(
        AUDIT_UNSERVED,
        lambda: unserved(publications.frame, arrivals.frame, chains.frame, readers.frame),
        arrivals,
        readers,
    )

    def missing_build() -> DataFrame:
        if lacking.rows == 0:  # the rule, and then nothing has to be read again
            return workshop.spark.createDataFrame([], schema_of(AUDIT_MISSING))
        pairs = missing_pairs(lacking.frame, arrivals.frame, readers.frame)
        sessions = sessions_of(activity.frame, nodes.frame)
        excuses = excuses_of(trace, nodes.frame)
        return fates_of(pairs, chains.frame, excuses, sessions, parameters.grace_ms * 1000)

    missing = stage(AUDIT_MISSING, missing_build, lacking, grace_ms=parameters.grace_ms)
    made = (readers, delays, missing, activity, nodes)
    completeness = stage(AUDIT_COMPLETENESS, lambda: completeness_of(*(each.frame for each in made)), *made)
    quantiles = stage(
        AUDIT_QUANTILES,
        lambda: quantiles_of(timed(), delays.frame, completeness.frame, nodes.frame),
        delays,
        completeness,
    )
    return Tables(
        *(nodes, activity, links, chains, publications, readers, delays, hops, missing, completeness),
        *(quantiles, quarantine),
    )


class _Stages:
    """Stages named after their tables; what has no other input comes from the trace."""

    def __init__(self, workshop: Workshop, origins: list[Origin]) -> None:
        self._workshop = workshop
        self._origins = origins

    def __call__(self, table: Table, build: Callable[[], DataFrame], *inputs: Made, **chosen: int) -> Made:
        name = table.name.removeprefix("audit_")
        return self._workshop.stage(name, table, build, inputs=inputs or self._origins, parameters=chosen)


def _trace(workshop: Workshop, sources: Sources) -> tuple[DataFrame, list[Origin], Made | None]:
    """The rows of the trace; lines are parsed once and kept as a table, tables are read where they lie."""
    origins = [file_input(path) for path in sources.paths]
    if not sources.lines:
        return table_rows(workshop.spark, sources.tables), origins, None
    spark = workshop.spark
    made = workshop.stage("trace", TRACE, lambda: trace_rows(spark, sources), inputs=origins)
    bad = workshop.stage(
        "quarantine", QUARANTINE, lambda: quarantine_of(spark, sources.lines), inputs=origins
    )
    return made.frame, [made.origin], bad
