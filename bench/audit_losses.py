"""How long an audit takes when much was lost.

``python -m bench.audit_losses [--events N N …] [--json FILE]``

One chain and two readers beside its author. Each reader drops every second event and says so: as many
recorded drops as events. Twice the events are twice the losses, and should take about twice as long.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from linnet.lab.audit.audit import audit
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.audit.synthetic import Shape, expected, synthetic_trace
from linnet.lab.spark.session import open_session
from linnet.lab.stages import Workshop

EVENTS = (50_000, 100_000)


def measure(spark: SparkSession, folder: Path, events: int) -> dict[str, object]:
    """The seconds of every stage of an audit of so many events and as many drops."""
    shape = Shape(topics=1, readers=3, authors=1, events=events, dropped_each=2)
    trace = folder / f"trace-{events}"
    synthetic_trace(spark, shape).write.parquet(str(trace))
    workshop = Workshop(spark, folder / f"audit-{events}")
    found = audit(workshop, [trace], Parameters()).findings
    told = {name: found.total(name) for name in ("lost", "explained")}
    wanted = expected(shape)
    if told != {"lost": wanted.lost, "explained": wanted.explained}:
        raise SystemExit(f"the audit found {told}, and not {wanted}")
    stages = {cost.name: round(cost.seconds, 2) for cost in workshop.costs}
    return {"rows": shape.rows, "drops": wanted.explained, "seconds": stages}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.audit_losses", description="Audit losses.")
    parser.add_argument("--events", type=int, nargs="+", default=list(EVENTS))
    parser.add_argument("--json", metavar="FILE", type=Path)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, open_session() as spark:
        measure(spark, Path(folder), 1_000)  # Java is slow until it has compiled what it runs
        told = [measure(spark, Path(folder), events) for events in asked.events]
    for row in told:
        print(json.dumps(row))
    if asked.json:
        asked.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
