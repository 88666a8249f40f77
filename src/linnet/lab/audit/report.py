"""What an audit says: whether anything was lost without a record, and everything beside that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.lab.audit.findings import EXAMPLES, SHOWN, Findings, Sums, Wrong
from linnet.lab.audit.labels import short
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.bins import NEVER, ecdf
from linnet.lab.report import plots
from linnet.lab.report.parts import Cell, Check, Figure, Grid, Plot, Report, Section, StageCost

READERS = (
    *("reader", "topic", "owed ", "delivered ", "missing ", "lost ", "duplicates ", "p50 ms "),
    *("p95 ms ", "p99 ms ", "mean ms ", "max ms ", "gaps filled ", "reconnects "),
)
_CURVES = 8

Labels = dict[str, str]


def report_of(
    findings: Findings,
    labels: Labels,
    parameters: Parameters,
    quarantined: dict[str, int],
    costs: Sequence[StageCost],
) -> Report:
    """The report of an audit."""
    lost = findings.total("lost")
    return Report(
        study="audit",
        title="What became of every message",
        abstract=(_verdict(findings), *warnings_of(findings, quarantined)),
        parameters={"grace_ms": parameters.grace_ms, "skew_ms": parameters.skew_ms},
        figures=_figures(findings),
        checks=(
            Check(
                id="lost",
                says="nothing was lost without a record",
                ok=lost == 0,
                detail=_first_loss(findings, labels) if lost else "",
            ),
        ),
        sections=tuple(_sections(findings, labels)),
        stages=tuple(costs),
        quarantined=quarantined,
    )


def _verdict(findings: Findings) -> str:
    owed, delivered, lost = (findings.total(name) for name in ("owed", "delivered", "lost"))
    said = f"{delivered:,} of {owed:,} deliveries that were owed happened"
    if lost:
        return f"{said}; {lost:,} were lost without a record."
    rest = owed - delivered
    return f"{said}." if not rest else f"{said}; of each of the other {rest:,} the trace says why."


def warnings_of(findings: Findings, quarantined: dict[str, int]) -> list[str]:
    """What a reader of the figures must know, in sentences."""
    found = []
    if bad := sum(quarantined.values()):
        found.append(f"{bad:,} lines could not be used: see the table quarantine.")
    if findings.holes:
        found.append(f"{findings.holes:,} rows are missing from the traces, by their counters.")
    if findings.skew_count:
        worst = -findings.skews[0].least_us / 1000
        found.append(
            f"Clocks differ: between {findings.skew_count:,} pairs of nodes something arrived before it was "
            f"sent, by {worst:,.0f} ms at most. Delays between them are not to be trusted."
        )
    if findings.counted:
        found.append(
            f"{len(findings.counted):,} readers only count (trace level loss): of them nobody can say which "
            "events they got. Set the level to full to know."
        )
    if unpublished := findings.total("unpublished"):
        found.append(f"{unpublished:,} deliveries are of events whose publication is in none of the traces.")
    return found


def _first_loss(findings: Findings, labels: Labels) -> str:
    first = findings.lost[0]
    receiver = labels.get(first.receiver, short(first.receiver))
    return (
        f"{receiver} never got event {first.seq} of device {first.device} in topic {short(first.topic)}, "
        f"published at {first.published_us / 1e6:.6f}"
    )


def _figures(findings: Findings) -> tuple[Figure, ...]:
    numbers: list[tuple[str, str, str, Cell]] = [
        ("rows", "rows of the trace", "rows", findings.rows),
        ("nodes", "nodes", "nodes", findings.node_count),
        ("topics", "topics", "topics", findings.topic_count),
        ("published", "events published", "events", findings.total("published")),
        ("owed", "deliveries owed", "deliveries", findings.total("owed")),
        ("delivered", "delivered", "deliveries", findings.total("delivered")),
        ("stored", "stored and not handed over", "deliveries", findings.total("stored")),
        (
            "explained",
            "not delivered, with a record that says why",
            "deliveries",
            findings.total("explained"),
        ),
        ("pending", "not yet due when the trace ends", "deliveries", findings.total("pending")),
        ("cut", "unknown, since a crash took the last rows", "deliveries", findings.total("cut")),
        ("lost", "lost without a record", "deliveries", findings.total("lost")),
        ("completeness", "completeness", "share", _share(findings)),
        ("not_owed", "not owed", "deliveries", findings.total("not_owed")),
        ("history", "history that was asked for", "deliveries", findings.total("history")),
        ("unpublished", "deliveries without a publication", "deliveries", findings.total("unpublished")),
        ("repeated", "delivered again", "deliveries", findings.total("repeated")),
        ("duplicates", "duplicates that were filtered out", "events", findings.total("duplicates")),
        ("gaps_filled", "gaps filled", "gaps", findings.total("gaps_filled")),
        ("resent", "events that came by asking", "events", findings.total("resent")),
        ("latency.mean", "mean of those that arrived", "ms", findings.latency.mean),
        ("latency.p50", "half arrived within", "ms", findings.latency.p50),
        ("latency.p90", "90 % arrived within", "ms", findings.latency.p90),
        ("latency.p95", "95 % arrived within", "ms", findings.latency.p95),
        ("latency.p99", "99 % arrived within", "ms", findings.latency.p99),
        ("latency.max", "the slowest of those that arrived took", "ms", findings.latency.most),
        ("holes", "rows missing from traces", "rows", findings.holes),
        ("crashes", "runs that ended without a goodbye", "runs", findings.crashes),
        ("skewed", "pairs of nodes whose clocks differ", "pairs", findings.skew_count),
    ]
    return tuple(Figure(id=id, title=title, unit=unit, measured=value) for id, title, unit, value in numbers)


def _share(findings: Findings) -> float | None:
    owed = findings.total("owed")
    return findings.total("delivered") / owed if owed else None


def reader_rows(findings: Findings, labels: Labels) -> list[tuple[Cell, ...]]:
    """A row of `READERS` for each. Links are those of the node, whatever topic they served."""
    rows: list[tuple[Cell, ...]] = [
        (
            labels.get(each.receiver or "", short(each.receiver or "")),
            short(each.topic),
            each.owed,
            each.delivered,
            each.owed - each.delivered,
            each.lost,
            each.duplicates,
            *_times(each),
            each.gaps_filled,
            findings.reconnects.get(each.receiver or ""),
        )
        for each in findings.readers
    ]
    return rows


def _times(sums: Sums) -> tuple[Cell, ...]:
    found = sums.latency
    return (found.p50, found.p95, found.p99, found.mean, found.most)


def _sections(findings: Findings, labels: Labels) -> list[Section]:
    def name(node: str) -> str:
        return labels.get(node, short(node))

    columns = tuple(column.strip() for column in READERS)
    told = (
        f"The {SHOWN} with most losses of {findings.reader_count:,}." if findings.reader_count > SHOWN else ""
    )
    readers = Grid(title="Readers", columns=columns, rows=tuple(reader_rows(findings, labels)), note=told)
    nodes = Grid(
        title="Nodes",
        columns=("node", "rows", "runs", "crashes", "rows missing", "first counter", "reconnects"),
        rows=tuple(
            (name(n.node), n.rows, n.runs, n.crashes, n.holes, n.begins_at, n.reconnects)
            for n in findings.nodes
        ),
    )
    sections = [
        Section(
            title="Deliveries", plots=_curves(findings), grids=(_topics(findings), readers, _hops(findings))
        ),
        Section(
            title="What went wrong, and how it was put right",
            grids=(
                _wrongs("Rejected, dropped, expired, evicted", findings.wrong),
                _wrongs("Resynchronised", findings.mended),
            ),
        ),
        Section(title="Traces", grids=(nodes,)),
    ]
    if findings.lost:
        sections.insert(0, _losses(findings, name))
    if findings.skews:
        sections.append(_skews(findings, name))
    if findings.counted:
        sections.append(_counts(findings, name))
    return sections


def _curves(findings: Findings) -> tuple[Plot, ...]:
    told = [topic for topic in findings.topics if topic.owed][:_CURVES]
    if not any(bin != NEVER for topic in told for bin in topic.bins):
        return ()
    series = {f"topic {short(topic.topic)}": ecdf(topic.bins) for topic in told}
    title = "Time from publication to delivery"
    caption = (
        "Share of all owed deliveries that happened within a time; what never came keeps a curve below 100 %."
    )
    return (Plot(title=title, svg=plots.ecdf(series, title=title, x_label="delay"), caption=caption),)


def _topics(findings: Findings) -> Grid:
    columns = (
        *(
            "topic",
            "published",
            "readers",
            "owed",
            "delivered",
            "stored",
            "explained",
            "pending",
            "cut",
            "lost",
        ),
        *("not owed", "history", "repeated", "gaps filled", "came by asking"),
        *("p50 ms", "p95 ms", "p99 ms", "mean ms", "max ms"),
    )
    rows = tuple(
        (
            *(short(t.topic), t.published, t.readers, t.owed, t.delivered, t.stored, t.explained, t.pending),
            *(t.cut, t.lost, t.not_owed, t.history, t.repeated, t.gaps_filled, t.resent),
            *_times(t),
        )
        for t in findings.topics
    )
    return Grid(title="Topics", columns=columns, rows=rows)


def _hops(findings: Findings) -> Grid:
    rows = tuple(("not over the overlay" if hops < 0 else hops, n) for hops, n in findings.hops.items())
    return Grid(title="Hops", columns=("hops", "deliveries"), rows=rows)


def _wrongs(title: str, found: Sequence[Wrong]) -> Grid:
    rows = tuple((each.kind, each.reason, each.note, each.rows, each.events) for each in found)
    return Grid(title=title, columns=("kind", "reason", "note", "records", "events"), rows=rows)


def _losses(findings: Findings, name: Callable[[str], str]) -> Section:
    rows = tuple(
        (short(each.topic), each.device, each.seq, name(each.author), name(each.receiver), each.published_us)
        for each in findings.lost
    )
    columns = ("topic", "device", "seq", "author", "receiver", "published, µs")
    return Section(
        title="Lost without a record",
        text=("Published, owed, never delivered, and no record says why. All are in the table missing.",),
        grids=(Grid(title=f"The first {len(rows)}", columns=columns, rows=rows),),
    )


def _skews(findings: Findings, name: Callable[[str], str]) -> Section:
    rows = tuple((name(each.author), name(each.receiver), each.least_us / 1000) for each in findings.skews)
    note = f"The worst {EXAMPLES} of {findings.skew_count:,}." if findings.skew_count > EXAMPLES else ""
    grid = Grid(title="Least delays", columns=("author", "receiver", "least delay, ms"), rows=rows, note=note)
    text = "Something was delivered before it was published: the receiver's clock is behind the author's."
    return Section(title="Clocks that differ", text=(text,), grids=(grid,))


def _counts(findings: Findings, name: Callable[[str], str]) -> Section:
    rows = tuple((short(c.topic), name(c.node), c.published, c.delivered) for c in findings.counted)
    columns = ("topic", "reader", "published by others", "delivered")
    return Section(
        title="Readers that only count",
        text=("At trace level loss a node writes counts per topic and minute, and no events.",),
        grids=(Grid(title="Counts", columns=columns, rows=rows),),
    )
