"""Events and subscriptions as rows: what one number draws does not depend on how many there are."""

from __future__ import annotations

from pyspark.sql import SparkSession

from linnet.content.predicate import read_predicate
from linnet.lab.matching.subscribing import widths_of
from linnet.lab.matching.workload import events_frame, harvest_of, predicates_frame, records_frame


def test_numbers_draw_for_themselves(spark: SparkSession) -> None:
    harvest = harvest_of("", 2)
    few = harvest.records[:40]
    records = records_frame(spark, harvest).where("record < 40")
    texts = {found.text for _, found in few}
    events = dict(map(tuple, events_frame(records, 60, 40, 2).collect()))
    assert sorted(events) == list(range(60))
    assert set(events.values()) <= texts
    assert len(set(events.values())) > 20
    assert dict(map(tuple, events_frame(records, 10, 40, 2).collect())) == {
        event: text for event, text in events.items() if event < 10
    }
    widths = widths_of(few)
    asked = dict(map(tuple, predicates_frame(records, 20, 40, widths, 2).collect()))
    assert sorted(asked) == list(range(20))
    assert all(read_predicate(text).text == text for text in asked.values())
    assert dict(map(tuple, predicates_frame(records, 5, 40, widths, 2).collect())).items() <= asked.items()
