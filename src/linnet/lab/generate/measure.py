"""What generated chats came to, counted in the rows as they were written.

The hash of a chat is over its columns, each hashed by itself in the order of the rows: times and lengths as
little-endian integers, strings as their lengths and their bytes. It does not depend on how rows are
cut into batches, partitions and files, as long as a chat lies in one partition in order of time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from linnet.lab.tables import Table

CHATS = Table(
    "chats",
    1,
    "chat STRING NOT NULL, members INT NOT NULL, messages BIGINT NOT NULL, granularity STRING NOT NULL, "
    "texts BIGINT NOT NULL, chars BIGINT NOT NULL, duration_ms BIGINT NOT NULL, "
    "pauses_60s BIGINT NOT NULL, pauses_120s BIGINT NOT NULL, sha256 STRING NOT NULL",
    ("chat",),
)
"""Generated chats: `pauses_60s` and `pauses_120s` count messages that follow another in less than that."""

_SCHEMA = pa.schema(
    [
        ("chat", pa.string()),
        ("members", pa.int32()),
        ("messages", pa.int64()),
        ("granularity", pa.string()),
        ("texts", pa.int64()),
        ("chars", pa.int64()),
        ("duration_ms", pa.int64()),
        ("pauses_60s", pa.int64()),
        ("pauses_120s", pa.int64()),
        ("sha256", pa.string()),
    ]
)


def measured_chats(messages: DataFrame) -> DataFrame:
    """A row of `CHATS` for each chat; a chat must lie in one partition, in order of time."""
    columns = messages.select("chat", "ts", "user", "chars", "kind", "granularity")
    return columns.mapInArrow(tally_batches, CHATS.columns)


def tally_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The chats of one partition."""
    tally: Tally | None = None
    for batch in batches:
        done = []
        runs = pc.run_end_encode(batch.column("chat"))
        start = 0
        for chat, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            if tally is not None and tally.chat != chat:
                done.append(tally.row())
                tally = None
            part = batch.slice(start, end - start)
            tally = tally or Tally(chat, part.column("granularity")[0].as_py())
            tally.add(part)
            start = end
        if done:
            yield pa.RecordBatch.from_pylist(done, schema=_SCHEMA)
    if tally is not None:
        yield pa.RecordBatch.from_pylist([tally.row()], schema=_SCHEMA)


class Tally:
    """One chat while its rows go by."""

    def __init__(self, chat: str, granularity: str) -> None:
        self.chat = chat
        self._granularity = granularity
        self._users: set[str] = set()
        self._messages = self._texts = self._chars = 0
        self._under_60 = self._under_120 = 0
        self._first = self._last = 0
        self._hashes: dict[str, hashlib._Hash] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """The next rows; `ValueError` if time goes back."""
        ts = rows.column("ts").to_numpy()
        if not self._messages:
            self._first = self._last = int(ts[0])
        pauses = np.diff(ts, prepend=self._last)
        if pauses.min() < 0:
            raise ValueError(f"{self.chat}: its messages are not in order of time")
        fresh = 0 if self._messages else 1
        self._under_60 += int((pauses < 60_000).sum()) - fresh
        self._under_120 += int((pauses < 120_000).sum()) - fresh
        self._last = int(ts[-1])
        self._messages += len(ts)
        chars = rows.column("chars").to_numpy()
        self._chars += int(chars.sum())
        self._texts += pc.sum(pc.equal(rows.column("kind"), "text")).as_py()
        self._users.update(rows.column("user").unique().to_pylist())
        self._hash("ts", ts.astype("<i8", copy=False).data)
        self._hash("chars", chars.astype("<i4", copy=False).data)
        for name in ("user", "kind", "granularity"):
            lengths, text = string_parts(rows.column(name))
            self._hash(f"{name} lengths", lengths.data)
            self._hash(name, text)

    def _hash(self, name: str, values: memoryview) -> None:
        self._hashes.setdefault(name, hashlib.sha256()).update(values)

    def row(self) -> dict[str, object]:
        """What was counted."""
        whole = "".join(f"{name} {each.hexdigest()}\n" for name, each in sorted(self._hashes.items()))
        return {
            "chat": self.chat,
            "members": len(self._users),
            "messages": self._messages,
            "granularity": self._granularity,
            "texts": self._texts,
            "chars": self._chars,
            "duration_ms": self._last - self._first,
            "pauses_60s": self._under_60,
            "pauses_120s": self._under_120,
            "sha256": hashlib.sha256(whole.encode()).hexdigest(),
        }


def string_parts(column: pa.StringArray) -> tuple[NDArray[np.int32], memoryview]:
    """The lengths of strings in bytes, and all their bytes."""
    _, places, text = column.buffers()
    offsets = np.frombuffer(places, dtype="<i4")[column.offset : column.offset + len(column) + 1]
    return np.diff(offsets), memoryview(text)[offsets[0] : offsets[-1]]
