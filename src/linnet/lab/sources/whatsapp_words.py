"""What WhatsApp itself writes into a chat, in the languages that its exports are often in."""

from __future__ import annotations

import re

from linnet.lab.sources.rows import kind_of_media

MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
"""Marks of writing direction; they say nothing."""


def _any_of(words: str, without_spaces: str) -> re.Pattern[str]:
    """Whole words of languages that part them, and words of those that do not."""
    return re.compile(rf"\b(?:{words})\b|{without_spaces}", re.IGNORECASE)


_OMITTED = _any_of(
    "omitted|weggelassen|ausgeschlossen|omitid[oa]s?|omis(?:es?)?|absente?s?|ocult(?:ad)?[oa]s?|"
    "omess[oaie]|weggelaten|non inclus[oaie]|pominięt[oaye]|dahil edilmedi|tidak disertakan|"
    "без медиафайлов|пропущен[оаы]?|utelämna[dt]e?s?|utelatt|udeladt|jätetty pois",
    "省略|忽略|생략|제외",
)
"""Words for a picture or the like that is not in the export."""

_KINDS = (
    ("video", _any_of("vid[eé]o|vídeo|видео|filmato|wideo|GIF", "视频|影片|비디오|동영상|動画")),
    ("audio", _any_of("audio|áudio|аудио|ses|geluid|ljud|lyd", "음성|오디오|音频|音訊|音声")),
    (
        "image",
        _any_of(
            "image|photo|foto|bild|bilde|billede|imagen|imagem|immagine|afbeelding|изображение|фото|"
            "görsel|gambar|obraz|zdjęcie|sticker|adesivo|стикер|figurinha|ç\u0131kartma|stiker|kuva",
            "图片|圖片|貼圖|사진|이미지|스티커|画像|スタンプ",
        ),
    ),
    (
        "file",
        _any_of(
            "document|dokument|documento|документ|belge|dokumen|file|contact card|kontaktkarte|media|"
            "medien|médias?|multimedia|mídia|multimédia|medya|медиа",
            "文件|檔案|문서|파일|メディア|미디어|媒体|媒體",
        ),
    ),
)

_ATTACHED = re.compile(
    r"(?P<android>[A-Z]{3,4}-[0-9]{8}-WA[0-9]+\.(?P<a>\w{2,5}) \([^()]+\))"
    r"|<[^<>:]+: ?(?P<ios>[0-9]+-(?P<what>[A-Z]+)-[^<>]*\.(?P<b>\w{2,5})|[^<>]+\.(?P<c>\w{2,5}))>"
)
_EXTENSIONS = {
    **dict.fromkeys(("jpg", "jpeg", "png", "webp", "heic", "gif"), "image/*"),
    **dict.fromkeys(("opus", "m4a", "mp3", "ogg", "aac", "amr", "wav"), "audio/*"),
    **dict.fromkeys(("mp4", "mov", "3gp", "mkv", "webm", "avi"), "video/*"),
}

_DELETED = re.compile(
    r"(?:"
    + "|".join(
        (
            "(?:you deleted this message|this message was deleted)",
            "(?:diese nachricht wurde gelöscht|du hast diese nachricht gelöscht)",
            "(?:se eliminó este mensaje|(?:este mensaje fue eliminado)|eliminaste este mensaje)",
            "(?:ce message a été supprimé|vous avez supprimé ce message)",
            "(?:mensagem apagada|es[st]a mensagem foi apagada|você apagou es[st]a mensagem)",
            "(?:questo messaggio è stato eliminato|hai eliminato questo messaggio)",
            "(?:dit bericht (?:is|werd) verwijderd|je hebt dit bericht verwijderd)",
            "(?:данное сообщение удалено|вы удалили данное сообщение)",
            "(?:bu mesaj silindi|bu mesaj\u0131 sildiniz)",
            "(?:pesan ini telah dihapus|anda telah menghapus pesan ini)",
        )
    )
    + r")\.?",
    re.IGNORECASE,
)
_EDITED = re.compile(
    rf"[\s{MARKS}]*<(?:This message was edited|Diese Nachricht wurde bearbeitet|Se editó este mensaje|"
    r"Ce message a été modifié|Mensagem editada|Questo messaggio è stato modificato|"
    r"Dit bericht (?:is|werd) bewerkt|Данное сообщение изменено|Bu mesaj düzenlendi|Pesan ini diedit)\.?>$",
    re.IGNORECASE,
)
_LONGEST_MARKER = 60
_LONGEST_MARK = 80


def media_kind(line: str, own_words: bool) -> str | None:
    """The kind of media that this line stands for; None if it is a text.

    WhatsApp puts such words between angle brackets or behind a mark, by which they are `own_words`. Without
    either they must be all that the line has, since people use them too. Android writes one phrase for
    all media that it leaves out: they are of kind ``file``.
    """
    attached = _ATTACHED.fullmatch(line)
    if attached is not None:
        ending = (attached["a"] or attached["b"] or attached["c"]).lower()
        return kind_of_media(_EXTENSIONS.get(ending, ""))
    if len(line) > _LONGEST_MARKER or _OMITTED.search(line) is None:
        return None
    certain = own_words or (line.startswith("<") and line.endswith(">"))
    rest = _OMITTED.sub("", line.strip("<>"))
    for kind, words in _KINDS:
        if words.search(rest) and (certain or not words.sub("", rest).strip()):
            return kind
    return "file" if certain else None


def is_deleted(text: str) -> bool:
    """Whether somebody took the message back."""
    return _DELETED.fullmatch(text) is not None


def without_edit_mark(text: str) -> str:
    """The text without WhatsApp's own words that it was edited."""
    return text[:-_LONGEST_MARK] + _EDITED.sub("", text[-_LONGEST_MARK:]) if text.endswith(">") else text
