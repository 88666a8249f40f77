"""How fast the stages of the lab are, each beside a bare pass of Spark over the same Parquet.

``python -m bench.lab [--messages N] [--records N] [--json FILE]`` (`make bench-lab`). The bare pass reads
every column of every row and hashes it, which is the least that a stage can do; it runs right after the
stage, in the same session, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.tables import number
from linnet.lab.audit.audit import audit
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.audit.synthetic import Shape, synthetic_trace
from linnet.lab.generate.job import Wanted, generate
from linnet.lab.spark.session import open_session
from linnet.lab.stages import Workshop
from linnet.lab.studies.relays.parameters import RelaysParameters
from linnet.lab.studies.relays.study import study

_PASSES = 3


class Speed(NamedTuple):
    """One stage beside its ceiling."""

    stage: str
    rows: int
    """Rows of what it reads, or writes if it reads nothing."""
    seconds: float
    bare_seconds: float

    def told(self) -> dict[str, object]:
        """For programs and for the table."""
        return {
            "stage": self.stage,
            "rows": self.rows,
            "rows_per_second": round(self.rows / self.seconds),
            "bare_rows_per_second": round(self.rows / self.bare_seconds),
            "share_of_bare": self.bare_seconds / self.seconds,
        }


def bare_pass(spark: SparkSession, folder: Path) -> tuple[int, float]:
    """Rows of a table, and the seconds of the fastest of some passes that read and hash all of it."""
    fastest, rows = float("inf"), 0
    for _ in range(_PASSES):
        began = time.perf_counter()
        row = spark.read.parquet(str(folder)).selectExpr("count(*)", "bit_xor(xxhash64(*))").first()
        fastest = min(fastest, time.perf_counter() - began)
        rows = row[0] if row else 0
    return rows, fastest


def speeds(spark: SparkSession, workshop: Workshop, reads: dict[str, Path]) -> Iterator[Speed]:
    """The stages of a job, each with the table that it reads."""
    for cost in workshop.costs:
        if cost.name in reads:
            rows, seconds = bare_pass(spark, reads[cost.name])
            yield Speed(cost.name, rows, cost.seconds, seconds)


def measure(spark: SparkSession, folder: Path, messages: int, records: int) -> Iterator[Speed]:
    """Generation, the relays study without its sample, and an audit."""
    chats = Workshop(spark, folder / "chats")
    generate(chats, Wanted(chats=max(2, messages // 5_000), messages=messages))
    said = chats.out / "messages"
    yield from speeds(spark, chats, {"messages": said, "chats": said})
    relays = Workshop(spark, folder / "relays")
    study(relays, RelaysParameters(chats=chats.out, sample=0))
    outcomes = relays.out / "outcomes"
    made = dict.fromkeys(("profiles", "pooled", "inversions"), outcomes)
    yield from speeds(spark, relays, {"outcomes": said, **made})
    trace = folder / "trace"
    synthetic_trace(spark, trace_shape(records)).write.parquet(str(trace))
    audited = Workshop(spark, folder / "audit")
    audit(audited, [trace], Parameters())
    yield from speeds(spark, audited, {cost.name: trace for cost in audited.costs})


def trace_shape(records: int) -> Shape:
    """A trace of about so many records: four topics of twenty readers."""
    return Shape(topics=4, readers=20, authors=2, events=max(1, records // 160))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.lab", description="Measure the stages of the lab.")
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--json", metavar="FILE", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_session() as spark:
        told = [each.told() for each in measure(spark, Path(folder), asked.messages, asked.records)]
    print(f"{'stage':<24}{'rows':>14}{'rows/s':>14}{'bare rows/s':>14}{'of bare':>10}")
    for row in told:
        cells = (number(float(str(row[name]))) for name in list(row)[1:4])
        print(
            f"{row['stage']:<24}"
            + "".join(f"{cell:>14}" for cell in cells)
            + f"{row['share_of_bare']:>10.1%}"
        )
    if asked.json:
        asked.json.write_text(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
