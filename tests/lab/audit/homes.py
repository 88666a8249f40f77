"""Rows as the files of nodes, as a node writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from linnet.trace.jsonlines import Header, Line
from linnet.trace.records import SCHEMA, SCHEMA_VERSION, Kind, Level, Row

HEADER = msgspec.json.encode(
    Header(SCHEMA_VERSION, Level.FULL, tuple(name for name, _, _ in SCHEMA))
).decode()
TORN = '{"time":17000000'
BAD = ('{"time":1.0,"node":"xyz","counter":1,"kind":"sent","events":1}', "not JSON at all")


def line_of(row: Row) -> str:
    def hex_of(value: bytes | None) -> str | None:
        return None if value is None else value.hex()

    line = Line(
        time=row.time,
        node=row.node.hex(),
        counter=row.counter,
        kind=Kind(row.kind),
        topic=hex_of(row.topic),
        event=hex_of(row.event),
        device=hex_of(row.device),
        seq=row.seq,
        events=row.events,
        peer=hex_of(row.peer),
        hops=row.hops,
        bytes=row.bytes,
        reason=row.reason,
        note=row.note,
    )
    return msgspec.json.encode(line).decode()


def write_lines(path: Path, lines: Iterable[str], torn: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in (HEADER, *lines)) + torn)


class Homes:
    """The homes of nodes; that of the first has a rotated file, bad lines and a torn last one."""

    def __init__(self, folder: Path, rows: Iterable[Row]) -> None:
        self.folder = folder
        by_node: dict[bytes, list[str]] = {}
        for row in rows:
            by_node.setdefault(row.node, []).append(line_of(row))
        self.names = {node.hex(): f"häuschen {number}+%" for number, node in enumerate(by_node)}
        for number, (node, lines) in enumerate(by_node.items()):
            trace = folder / self.names[node.hex()] / "trace" / "trace.jsonl"
            if number == 0:
                half = len(lines) // 2
                write_lines(trace.with_name("trace.jsonl.1"), lines[:half])
                write_lines(trace, [lines[half], BAD[0], *lines[half + 1 :], BAD[1]], TORN)
            else:
                write_lines(trace, lines)
