"""Run by `test_replay` in processes of its own: whole nodes with all that can happen; prints its hash."""

from __future__ import annotations

import sys

from tests.streams.tale import DURABLE, PUBLISHERS, Tale

from linnet.testing.networks import RowTrace


def main(seed: int) -> None:
    trace = RowTrace()
    tale = Tale(seed, loss=0.03, commit_delay=0.05, trace=trace)
    tale.churn((*DURABLE, *PUBLISHERS, "s0", "t0"), 3)
    tale.partition(8)
    tale.village.run(30)
    print(trace.sha256(), len(trace.rows))


if __name__ == "__main__":
    main(int(sys.argv[1]))
