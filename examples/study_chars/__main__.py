"""Run it from the checkout: python -m examples.study_chars CHATS OUT (needs linnet[lab])."""

from __future__ import annotations

import sys
from pathlib import Path

from examples.study_chars.study import Parameters, study

from linnet.lab.report.writing import write_report
from linnet.lab.spark.session import open_session
from linnet.lab.stages import Workshop


def main() -> None:
    chats, out = map(Path, sys.argv[1:])
    with open_session() as spark:
        made = study(Workshop(spark, out, print), Parameters(chats), print)
    write_report(made, out)
    print(f"report: {out / 'report.html'}")


if __name__ == "__main__":
    main()
