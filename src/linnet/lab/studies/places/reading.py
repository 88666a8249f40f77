"""Raw fragments read: the signature first, then the head, by the shipped functions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.event.signing import decode_unit, verify_unit
from linnet.identity.cards import Card
from linnet.lab.studies.places.columns import FRAGMENTS, arrow_of, batch_of
from linnet.lab.studies.places.voice import card_of
from linnet.places.multicast.fragmentation import head_of

Row = tuple[object, ...]


def fragments_of(units: DataFrame, seed: int) -> DataFrame:
    """Every fragment checked, refused ones with the reason. Grain: (place, arrival)."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema, card = arrow_of(FRAGMENTS), card_of(seed)
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("place", "arrival", "unit"))
            rows = [(place, arrival, *read(raw, card)) for place, arrival, raw in zip(*columns, strict=True)]
            yield batch_of(rows, schema)

    return units.mapInArrow(task, FRAGMENTS.columns)


def read(raw: bytes, card: Card) -> Row:
    """The columns of `FRAGMENTS` behind `arrival`."""
    try:
        verified = verify_unit(decode_unit(raw), card)
        event = verified.events[0]
        head = head_of(event)
    except RemoteError as error:
        return (*(None,) * 10, error.reason.value)
    except msgspec.DecodeError:
        return (*(None,) * 10, Reason.MALFORMED.value)
    change = (None, None, None)
    if head.change is not None:
        change = (head.change.nym, head.change.joins, head.change.effective_since)  # type: ignore[assignment]
    numbers = (head.fragment, head.message, head.offset, head.generation, head.flags)
    return (*numbers, *change, event.id, event.body, None)
