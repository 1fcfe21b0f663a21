"""The text of an HTML page, a line for each block."""

from __future__ import annotations

from html.parser import HTMLParser

_HIDDEN = ("script", "style", "svg")
_INLINE = ("a", "b", "code", "del", "em", "i", "ins", "kbd", "mark", "small", "span", "strong", "sup")


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._separate(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN
        self._separate(tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)

    def _separate(self, tag: str) -> None:
        self.pieces.append(" " if tag in _INLINE else "\n")


def text_of_html(page: str) -> str:
    texts = _Texts()
    texts.feed(page)
    lines = (" ".join(line.split()) for line in "".join(texts.pieces).splitlines())
    return "".join(f"{line}\n" for line in lines if line)
