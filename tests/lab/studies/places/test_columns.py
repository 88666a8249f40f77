"""Tables as Arrow has them."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]

from linnet.lab.studies.places.columns import ANSWERS, FRAGMENTS, UNITS, arrow_of, batch_of


def test_columns_become_arrow_types() -> None:
    assert arrow_of(UNITS) == pa.schema(
        [("place", pa.int32()), ("arrival", pa.int64()), ("unit", pa.binary())]
    )
    assert arrow_of(FRAGMENTS).field("joins").type == pa.bool_()


def test_rows_become_a_batch_also_if_there_are_none() -> None:
    schema = arrow_of(ANSWERS)
    assert batch_of([(1, "gaps", "a", "b")], schema).to_pylist() == [
        {"place": 1, "job": "gaps", "key": "a", "answer": "b"}
    ]
    assert batch_of([], schema).num_rows == 0
