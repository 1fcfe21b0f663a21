"""A JSON text that is edited in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaltui.core.jsondoc.edits import Edit
from evaltui.core.jsondoc.preview import LineChange, changed_lines
from evaltui.core.jsondoc.spans import Tree
from evaltui.core.jsondoc.splices import Splice
from evaltui.core.jsondoc.writing import performed
from evaltui.core.model.problems import JsonPath


class JsonDocument:
    """A JSON text, a byte order mark included, and its value, kept in step.

    Values are never changed in place: what `value` gave stays as it was, and after an edit everything that
    the edit did not touch is the same object. Of a key given twice the last one counts. Raises ValueError
    for a text that is not valid JSON (the problem in words: `evaltui.files.json_text.parse`).
    """

    def __init__(self, text: str) -> None:
        self._tree = Tree.parse(text)

    @property
    def text(self) -> str:
        """Put together anew each time; of a big document, in some milliseconds."""
        return str(self._tree.text)

    @property
    def value(self) -> Any:
        return self._tree.root.value

    def apply(self, edits: Iterable[Edit]) -> tuple[Splice, ...]:
        """Do the edits, one after the other, and give the splices that did it, in order.

        Raises EditError, and then none of the edits is done.
        """
        self._tree, splices = _edited(self._tree, edits)
        return tuple(splices)

    def preview(self, edits: Iterable[Edit]) -> list[LineChange]:
        """What `apply` would do to the lines of the text, without doing it. Raises EditError."""
        before = self._tree
        after, splices = _edited(before, edits)
        return changed_lines(before.text, after.text, splices)

    def splice(self, splices: Iterable[Splice]) -> None:
        """Do splices one after the other; the text in between need not be valid JSON.

        Raises ValueError where one does not fit the text or the result is not valid JSON, and then none is
        done.
        """
        tree: Tree | None = self._tree
        text = self._tree.text
        for splice in splices:
            text = text.spliced(splice)
            tree = tree and tree.renewed(text, splice)
        self._tree = tree or Tree.parse(str(text))

    def line_of(self, path: JsonPath) -> int:
        """The line, from 1, on which a path begins: for a member, that of its key.

        A path that the text does not have gets the line of its deepest ancestor that exists.
        """
        return self._tree.text.count("\n", 0, self._tree.way_towards(path)[-1].begin) + 1

    def text_at(self, path: JsonPath) -> str:
        """The text of a value. Raises EditError where there is nothing at the path."""
        return self._tree.place(path).own_text

    def texts_in(self, path: JsonPath) -> list[str]:
        """The texts of all elements of an array, or members of an object, in order. Raises EditError."""
        return self._tree.place(path).texts()


def _edited(tree: Tree, edits: Iterable[Edit]) -> tuple[Tree, list[Splice]]:
    done: list[Splice] = []
    for edit in edits:
        tree, splices = performed(tree, edit)
        done += splices
    return tree, done
