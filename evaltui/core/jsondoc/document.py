"""A JSON text that is edited in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltui.core.jsondoc.chunks import CASES, Chunks, cut
from evaltui.core.jsondoc.edit_error import EditError
from evaltui.core.jsondoc.spans import Tree
from evaltui.core.model.json_values import spelt
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import StoredCase

if TYPE_CHECKING:
    from evaltui.core.jsondoc.edits import Edit
    from evaltui.core.jsondoc.splices import LineChange, Splice
    from evaltui.core.jsondoc.windows import Editor


class JsonDocument:
    """A JSON text, a byte order mark included, and its value, kept in step.

    The cases of an eval set are chunks of the text: an edit reads those that it changes and a few beside
    them, and no others. Values are never changed in place: what `value` gave stays as it was, and after an
    edit everything that the edit did not touch is the same object. Of a key given twice the last one counts.
    Raises ValueError for a text that is not valid JSON (in words: `evaltui.files.json_text.parse`).
    """

    def __init__(self, text: str | Chunks, like: JsonDocument | None = None) -> None:
        """Chunks that `like` has as well are shared with it."""
        self.chunks: Chunks = cut(text, like.chunks if like else None) if isinstance(text, str) else text
        self._value: Any = None
        self._editor: Editor | None = None

    @property
    def text(self) -> str:
        """Put together anew each time; of a big document, in some milliseconds."""
        return self.chunks.text

    @property
    def frame(self) -> str:
        """The text without the chunks."""
        return self.chunks.head + self.chunks.tail

    @property
    def size(self) -> int:
        """Characters of the text."""
        return sum(map(len, self.chunks.parts))

    @property
    def value(self) -> Any:
        if self._value is None:
            self._value = self.chunks.value
        return self._value

    @property
    def cases(self) -> Sequence[StoredCase]:
        """The cases of an eval set; none of any other file."""
        if self.chunks.key is not None or not isinstance(self.value, dict):
            return self.chunks.cases
        cases = self.value.get(spelt(CASES, self.value))
        return [StoredCase.of_data(case) for case in cases] if isinstance(cases, list) else []

    def copy(self) -> JsonDocument:
        """The document as it is now, which shares everything with this one."""
        return JsonDocument(self.chunks)

    def apply(self, edits: Iterable[Edit]) -> tuple[Splice, ...]:
        """Do the edits, one after the other, and give the splices that did it, in order.

        Raises EditError, and then none of the edits is done.
        """
        editor = self._edit()
        splices = [splice for edit in edits for splice in editor.perform(edit)]
        self._adopt(editor)
        return tuple(splices)

    def preview(self, edits: Iterable[Edit]) -> Preview:
        """What `apply` would do, without doing it. Raises EditError."""
        from evaltui.core.jsondoc.splices import changed_lines

        after = self.copy()
        splices = after.apply(edits)
        return Preview(after, tuple(changed_lines(self.chunks.parts, after.chunks.parts, splices)))

    def splice(self, splices: Sequence[Splice]) -> None:
        """Do splices one after the other; the text in between need not be valid JSON.

        Raises ValueError where one does not fit the text or the result is not valid JSON, and then none is
        done.
        """
        from evaltui.core.jsondoc.splices import applied
        from evaltui.core.jsondoc.windows import Editor

        editor = self._edit()
        try:
            for splice in splices:
                editor.splice(splice)
        except ValueError:
            # Not valid in between, or nowhere.
            editor = Editor(cut(applied(self.text, splices), self.chunks))
        self._adopt(editor)

    def spliced(self, splices: Sequence[Splice]) -> JsonDocument:
        """A copy with splices done, as by `splice`."""
        changed = self.copy()
        changed.splice(splices)
        return changed

    def replace(self, other: JsonDocument) -> tuple[Splice, ...]:
        """Make the text that of another document; the splices that did it, none where it was the same."""
        if self.chunks is other.chunks:
            return ()
        from evaltui.core.jsondoc.splices import differences

        splices = tuple(differences(self.chunks.parts, other.chunks.parts))
        if splices:
            self.chunks, self._value, self._editor = other.chunks, None, None
        return splices

    def _edit(self) -> Editor:
        """An editor of what there is now. It is used up: where it fails, this document is as it was."""
        # What is only read does not wait for what edits.
        from evaltui.core.jsondoc.windows import Editor

        editor, self._editor = self._editor, None
        return editor or Editor(self.chunks)

    def _adopt(self, editor: Editor) -> None:
        chunks = editor.chunks()
        if chunks is not self.chunks:
            self.chunks, self._value = chunks, None
        self._editor = editor

    def line_of(self, path: JsonPath) -> int:
        """The line, from 1, on which a path begins: for a member, that of its key.

        A path that the text does not have gets the line of its deepest ancestor that exists.
        """
        chunks = self.chunks
        number = self._case_at(path)
        if number is None:
            text = self.frame
            position = Tree.parse(text).deepest_way(path)[-1].begin
            lines = text.count("\n", 0, position) + 1
            if chunks.key is not None and position >= len(chunks.head):
                lines += sum(lead.count("\n") for lead in chunks.leads)
                lines += sum(case.lines for case in chunks.cases)
            return lines
        own = chunks.cases[number].text
        return chunks.lines_of_cases[number] + own.count(
            "\n", 0, Tree.parse(own).deepest_way(path[2:])[-1].begin
        )

    def has_text_of(self, other: JsonDocument) -> bool:
        """Whether both texts are the same."""
        return self.chunks is other.chunks or self.chunks.has_text_of(other.chunks)

    def cases_at(self, path: JsonPath) -> tuple[StoredCase, ...]:
        """The chunks of the list at a path, none for any list but that of the cases of an eval set."""
        return self.chunks.cases if path == (self.chunks.key,) else ()

    def text_at(self, path: JsonPath) -> str:
        """The text of a value. Raises EditError where there is nothing at the path."""
        number = self._case_at(path)
        if number is not None:
            own = self.chunks.cases[number].text
            return own if len(path) == 2 else _own_text(own, path[2:], path[:2])
        if path and path[0] != self.chunks.key:
            return _own_text(self.frame, path, ())
        return _own_text(self.text, path, ())

    def _case_at(self, path: JsonPath) -> int | None:
        """Which case a path leads into; None where into none of them."""
        if self.chunks.key is None or len(path) < 2 or path[0] != self.chunks.key:
            return None
        number = path[1]
        return number if isinstance(number, int) and 0 <= number < len(self.chunks.cases) else None


@dataclass(frozen=True)
class Preview:
    """What edits would do to a document."""

    document: JsonDocument
    """The document that they would make of it."""
    lines: tuple[LineChange, ...]
    """The lines that would be other ones."""


def _own_text(text: str, path: JsonPath, owner: JsonPath) -> str:
    try:
        return Tree.parse(text).place(path).own_text
    except EditError as error:
        raise EditError(error.message, (*owner, *error.path)) from None
