from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from linnet.core.errors import LocalError
from linnet.node.file_transfer import AttachmentError, IncomingFile, OutgoingFile, PartFile
from linnet.rooms.attachments import ATTACHMENT_BYTES, Attachment, Piece, attachment_body, attachment_of
from linnet.rooms.messages import CHUNK_BYTES

CONTENT = bytes(range(256)) * (CHUNK_BYTES // 256) + b"the end"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    path.write_bytes(CONTENT)
    return path


def sent(path: Path, sealed: bool = False) -> tuple[Attachment, dict[bytes, bytes]]:
    pieces: dict[bytes, bytes] = {}
    with OutgoingFile(path, sealed) as outgoing:
        while isinstance(step := outgoing.step(), Piece):
            pieces[step.digest] = step.data
    return attachment_of(attachment_body(step)), pieces


def receive(incoming: IncomingFile, pieces: dict[bytes, bytes]) -> Path:
    while (digest := incoming.wanted) is not None:
        incoming.give(digest, pieces[digest])
    return incoming.finish()


def test_a_file_arrives_as_it_left(file: Path, tmp_path: Path) -> None:
    attachment, pieces = sent(file)
    assert (attachment.name, attachment.size, attachment.media) == ("cat.png", len(CONTENT), "image/png")
    assert [len(piece) for piece in pieces.values()] == [CHUNK_BYTES, 7]
    target = tmp_path / "in"
    target.mkdir()
    with IncomingFile(attachment, target) as incoming:
        path = receive(incoming, pieces)
        assert incoming.done == len(CONTENT)
    assert path.read_bytes() == CONTENT
    assert os.listdir(target) == ["cat.png"]


def test_a_sealed_file_arrives_as_it_left_and_no_two_are_sealed_alike(file: Path, tmp_path: Path) -> None:
    attachment, pieces = sent(file, sealed=True)
    assert [len(piece) for piece in pieces.values()] == [CHUNK_BYTES, 4096]
    assert not any(CONTENT[:64] in piece for piece in pieces.values())
    with IncomingFile(attachment, tmp_path, "in.png") as incoming:
        assert receive(incoming, pieces).read_bytes() == CONTENT
    again, others = sent(file, sealed=True)
    assert again.key != attachment.key
    assert not pieces.keys() & others.keys()


def test_a_sealed_piece_of_another_file_is_told(file: Path, tmp_path: Path) -> None:
    attachment, pieces = sent(file, sealed=True)
    other, others = sent(file, sealed=True)
    mixed = replace(attachment, digests=(other.digests[0], *attachment.digests[1:]))
    with IncomingFile(mixed, tmp_path, "in.png") as incoming, pytest.raises(AttachmentError):
        receive(incoming, {**pieces, **others})
    assert not (tmp_path / "in.png").exists()


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    attachment, pieces = sent(tmp_path / "empty")
    assert pieces == {}
    with IncomingFile(attachment, tmp_path, "other") as incoming:
        assert receive(incoming, pieces).read_bytes() == b""


def test_a_wrong_piece_leaves_nothing_behind(file: Path, tmp_path: Path) -> None:
    attachment, pieces = sent(file)
    target = tmp_path / "in"
    target.mkdir()
    with IncomingFile(attachment, target) as incoming:
        wanted = incoming.wanted
        assert wanted is not None
        with pytest.raises(AttachmentError, match="not what its digest names"):
            incoming.give(wanted, b"x" * CHUNK_BYTES)
        incoming.give(wanted, pieces[wanted])
        assert incoming.wanted != wanted
    assert os.listdir(target) == []


def test_nothing_is_overwritten(file: Path) -> None:
    attachment, pieces = sent(file)
    with pytest.raises(AttachmentError, match="is there already"), IncomingFile(attachment, file.parent):
        pass
    with IncomingFile(attachment, file.parent, "new") as incoming:
        (file.parent / "new").write_text("meanwhile")
        with pytest.raises(AttachmentError, match="is there already"):
            receive(incoming, pieces)
    assert (file.parent / "new").read_text() == "meanwhile"


def test_what_cannot_be_read_or_written_is_told(file: Path, tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none", "cannot be read"), (Path(os.devnull), "is no file")):
        with pytest.raises(AttachmentError, match=words), OutgoingFile(path):
            pass
    attachment, _ = sent(file)
    with (
        pytest.raises(AttachmentError, match="cannot be written"),
        IncomingFile(attachment, tmp_path / "no" / "where"),
    ):
        pass


def test_a_file_that_changes_is_noticed(file: Path) -> None:
    with OutgoingFile(file) as outgoing:
        outgoing.step()
        with file.open("ab") as more:
            more.write(b"x" * CHUNK_BYTES)
        with pytest.raises(AttachmentError, match="changes while it is read"):
            [outgoing.step() for _ in range(9)]
    with OutgoingFile(file) as outgoing:
        os.truncate(file, 10)
        with pytest.raises(AttachmentError, match="changes while it is read"):
            outgoing.step()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.touch()
    os.truncate(large, ATTACHMENT_BYTES + 1)
    with pytest.raises(AttachmentError, match="at most"), OutgoingFile(large):
        pass


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    with PartFile(tmp_path / "a", 5) as file:
        file.add(b"he")
        assert not file.target.exists()
        file.add(b"llo")
    assert file.target.read_bytes() == b"hello"
    assert list(tmp_path.iterdir()) == [file.target]
    with pytest.raises(LocalError, match="is there already"):
        PartFile(tmp_path / "a", 5)


def test_what_was_interrupted_is_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="has 2 of 5 bytes"), PartFile(tmp_path / "a", 5) as file:
        file.add(b"he")
    with pytest.raises(LocalError, match="has 3 of 5 bytes"), PartFile(tmp_path / "a", 5) as file:
        file.add(b"l")
    with PartFile(tmp_path / "a", 5) as file:
        assert file.done == 3
        file.add(b"lo")
    assert file.target.read_bytes() == b"hello"


def test_one_that_is_too_long_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"something else")
    with PartFile(tmp_path / "a", 2) as file:
        assert file.done == 0
        file.add(b"ok")
    assert file.target.read_bytes() == b"ok"
