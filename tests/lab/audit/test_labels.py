"""Names for people."""

from __future__ import annotations

from pathlib import Path

from linnet.lab.audit.labels import node_labels, short
from linnet.lab.audit.sources import LineFile, Sources
from linnet.trace.records import Level


def file(path: str, node: str | None) -> LineFile:
    return LineFile(Path(path), Level.FULL, node, None)


def test_a_folder_names_the_node_unless_several_share_it() -> None:
    files = (
        file("/homes/ann/trace/trace.jsonl", "aa"),
        file("/homes/ann/trace/trace.jsonl.1", "aa"),
        file("/logs/ben.jsonl", "bb"),
        file("/logs/cleo.jsonl", "cc"),
        file("/homes/new/trace/trace.jsonl", None),
    )
    assert node_labels(Sources(files, ())) == {"aa": "ann"}


def test_ids_are_cut() -> None:
    assert short("0123456789abcdef") == "01234567"
