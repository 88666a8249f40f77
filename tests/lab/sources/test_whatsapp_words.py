"""WhatsApp's own words."""

from __future__ import annotations

import pytest

from linnet.lab.sources.whatsapp_words import is_deleted, media_kind, without_edit_mark


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("<Media omitted>", "file"),
        ("<Medien ausgeschlossen>", "file"),
        ("<Multimedia omitido>", "file"),
        ("<Médias omis>", "file"),
        ("<Mídia oculta>", "file"),
        ("<Media omessi>", "file"),
        ("<Media weggelaten>", "file"),
        ("<Без медиафайлов>", "file"),
        ("<Medya dahil edilmedi>", "file"),
        ("<Media tidak disertakan>", "file"),
        ("image omitted", "image"),
        ("Bild weggelassen", "image"),
        ("imagen omitida", "image"),
        ("image absente", "image"),
        ("immagine omessa", "image"),
        ("afbeelding weggelaten", "image"),
        ("sticker omitted", "image"),
        ("画像省略", "image"),
        ("video omitted", "video"),
        ("GIF omitted", "video"),
        ("vidéo absente", "video"),
        ("audio omitted", "audio"),
        ("Audio weggelassen", "audio"),
        ("áudio ocultado", "audio"),
        ("Contact card omitted", "file"),
        ("IMG-20240101-WA0001.jpg (file attached)", "image"),
        ("VID-20240101-WA0001.mp4 (Datei angehängt)", "video"),
        ("PTT-20240101-WA0001.opus (archivo adjunto)", "audio"),
        ("DOC-20240101-WA0001.pdf (file attached)", "file"),
        ("<attached: 00000012-PHOTO-2024-01-01-10-00-00.jpg>", "image"),
        ("<Anhang: 00000013-AUDIO-2024-01-01-10-00-00.opus>", "audio"),
        ("you omitted the video", None),
        ("the file was omitted by me", None),
        ("image", None),
        ("<3", None),
        ("hello", None),
        ("", None),
    ],
)
def test_media_that_are_not_in_the_export(line: str, kind: str | None) -> None:
    assert media_kind(line, own_words=False) == kind


def test_behind_a_mark_words_are_whatsapps_own() -> None:
    assert media_kind("report.pdf • 3 pages document omitted", own_words=True) == "file"
    assert media_kind("report.pdf • 3 pages document omitted", own_words=False) is None
    assert media_kind("画像は省略されました", own_words=True) == "image"


def test_deleted_and_edited() -> None:
    assert is_deleted("This message was deleted")
    assert is_deleted("Diese Nachricht wurde gelöscht.")
    assert is_deleted("Se eliminó este mensaje.")
    assert not is_deleted("This message was deleted by whom?")
    assert without_edit_mark("so \u200e<This message was edited>") == "so"
    assert without_edit_mark("so <3") == "so <3"
    long = "long " * 100
    assert without_edit_mark(long + "<This message was edited>") == long.rstrip()
