"""What became of what was not delivered, against a judge that looks at every event and every reader."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import GRACE_US, Oracle, Tale


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fates_are_those_of_a_judge_who_looks_at_every_pair(spark: SparkSession, seed: int) -> None:
    tale = Tale(seed, steps=120)
    staged = Staged(spark, tale.rows)
    found = {
        ((row.topic, row.device, row.seq), staged.name(row.receiver)): row.fate
        for row in staged.missing(GRACE_US).collect()
    }
    wanted = Oracle(tale.rows).missing()
    assert found == wanted
    assert wanted
