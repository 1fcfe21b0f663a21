"""Edits of a text in chunks: each is done in the case that it changes, or in a small text of those around."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from evaltui.core.jsondoc.chunks import Chunks, cases_node, cut
from evaltui.core.jsondoc.edit_error import EditError, missing
from evaltui.core.jsondoc.edits import Duplicate, Edit, Insert, InsertText, Move, Put, PutText, check_index
from evaltui.core.jsondoc.spans import BeyondPartError, Node, Tree
from evaltui.core.jsondoc.splices import Splice, applied
from evaltui.core.jsondoc.writing import cut_out, paste, performed
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import StoredCase

# Cases on each side whose form a new value may take, as `style.model_for` has it.
_AROUND = 4


@dataclass
class _Window:
    """The text without its cases but for those from `low` to `high`."""

    low: int
    high: int
    tree: Tree


class Editor:
    """A text in chunks while it is changed."""

    def __init__(self, chunks: Chunks) -> None:
        self._frozen: Chunks | None = None
        self._window: _Window | None = None
        self._part: tuple[StoredCase, str, Tree] | None = None
        """The case that was changed last, what stands before it, and the tree of both."""
        self._set(chunks)

    def _set(self, chunks: Chunks) -> None:
        self._head, self._tail, self._key, self._frame = chunks.head, chunks.tail, chunks.key, chunks.frame
        self._leads, self._cases = list(chunks.leads), list(chunks.cases)
        self._window = None
        self._frame_tree: Tree | None = None
        # The case before which as many characters of cases stand: edits most often go from case to case.
        self._cursor = (0, 0)
        self._frozen = chunks

    def chunks(self) -> Chunks:
        """What there is now."""
        if self._frozen is None:
            self._frozen = Chunks(
                self._head, tuple(self._leads), tuple(self._cases), self._tail, self._key, self._frame
            )
        return self._frozen

    # Edits

    def perform(self, edit: Edit) -> list[Splice]:
        """Do an edit. Raises EditError where it cannot be done."""
        path = edit.path
        changes_list = isinstance(edit, Insert | InsertText | Move | Duplicate)
        if self._key is None or not path or (path == (self._key,) and not changes_list):
            return self._perform_on_all(edit)
        if path[0] != self._key:
            return self._perform_in(self._known_window(0, min(len(self._cases), 2 * _AROUND)), edit, 0)
        if len(path) > 1:
            number = path[1]
            if not isinstance(number, int) or not 0 <= number < len(self._cases):
                raise missing(path[:2])
            try:
                return self._perform_in_case(number, replace(edit, path=path[2:]))
            except (BeyondPartError, EditError):
                # How it is done, or why it cannot be done, is told in the cases around.
                window = self._window_around(number, _side(edit))
                local = replace(edit, path=(self._key, number - window.low, *path[2:]))
                return self._perform_in(window, local, window.low)
        return self._perform_on_list(edit, path)

    def _perform_in_case(self, number: int, edit: Edit) -> list[Splice]:
        """Raises BeyondPartError where it takes more than the case to see how new text looks."""
        if isinstance(edit, PutText) and not edit.path:
            raise BeyondPartError
        case, lead = self._cases[number], self._leads[number]
        if self._part is None or self._part[:2] != (case, lead):
            # With what stands before it: the line that it begins in tells its margin.
            node = Node(case.data(), len(case.text), len(lead))
            self._part = case, lead, Tree(lead + case.text, node, None)
        tree, splices = performed(self._part[2], edit)
        if not splices:
            return []
        begin = len(self._head) + self._offset_of(number)
        case = self._cases[number] = StoredCase(tree.text[len(lead) :], tree.root.value)
        self._part, self._window, self._frozen = (case, lead, tree), None, None
        return [splice.later(begin) for splice in splices]

    def _perform_on_list(self, edit: Edit, path: JsonPath) -> list[Splice]:
        match edit:
            case Insert(_, index) | InsertText(_, index):
                check_index(self._cases, path, index, at_end=True)
            case Move(_, index, to):
                check_index(self._cases, path, index)
                check_index(self._cases, path, to)
                return self._move(path, index, to)
            case Duplicate(_, index):
                check_index(self._cases, path, index)
        assert isinstance(edit, Insert | InsertText | Duplicate)
        window = self._window_around(edit.index, _side(edit))
        return self._perform_in(window, replace(edit, index=edit.index - window.low), window.low)

    def _move(self, path: JsonPath, index: int, to: int) -> list[Splice]:
        if index == to:
            return []
        window = self._window_around(index)
        tree, cut_splices, own, separator = cut_out(window.tree, window.tree.place(path), index - window.low)
        splices = self._adopt(window, tree, cut_splices)
        window = self._window_around(to)
        tree, pasted = paste(window.tree, window.tree.place(path), to - window.low, own, separator)
        return splices + self._adopt(window, tree, pasted)

    def _perform_in(self, window: _Window, edit: Edit, low: int) -> list[Splice]:
        try:
            tree, splices = performed(window.tree, edit)
        except EditError as error:
            path = error.path
            if low and len(path) > 1 and path[0] == self._key and isinstance(path[1], int):
                raise EditError(error.message, (path[0], path[1] + low, *path[2:])) from None
            raise
        return self._adopt(window, tree, splices)

    def _perform_on_all(self, edit: Edit) -> list[Splice]:
        tree, splices = performed(self._whole(), edit)
        if splices:
            self._renew(tree.text, tree)
        return splices

    def _whole(self) -> Tree:
        if self._key is None and self._window:
            return self._window.tree
        return Tree.parse(self.chunks().text)

    def _renew(self, text: str, tree: Tree | None = None) -> None:
        """From now on the text is this one, `tree` what is known of it."""
        chunks = cut(text, self.chunks())
        if chunks.key is not None or tree is None:
            self._set(chunks)
        else:
            self._set(replace(chunks, frame=tree.root.value))
            self._window = _Window(0, 0, tree)

    # Splices

    def splice(self, splice: Splice) -> None:
        """Raises ValueError where it does not fit the text or makes it invalid."""
        if self._key is None:
            tree = self._whole().spliced(splice)
            self._renew(tree.text, tree)
            return
        number, begin = self._case_with(splice.start)
        if number is not None and begin < splice.start and splice.end < begin + len(self._cases[number].text):
            window = self._window_around(number)
            local = replace(splice, start=splice.start - self._offset_of(window.low))
            self._adopt(window, window.tree.spliced(local), [local])
        else:
            self._renew(splice.apply(self.chunks().text))

    def _case_with(self, position: int) -> tuple[int | None, int]:
        """The case whose text has a position, and where that begins; None where none has."""
        position -= len(self._head)
        number, offset = self._cursor
        while number and position < offset:
            number -= 1
            offset -= self._size(number)
        while number < len(self._cases) and position >= offset + self._size(number):
            offset += self._size(number)
            number += 1
        self._cursor = number, offset
        begin = offset + len(self._leads[number]) if number < len(self._cases) else 0
        if number == len(self._cases) or not begin <= position:
            return None, 0
        return number, begin + len(self._head)

    def _size(self, number: int) -> int:
        return len(self._leads[number]) + len(self._cases[number].text)

    def _offset_of(self, number: int) -> int:
        """How many characters of cases stand before one of them."""
        at, offset = self._cursor
        for one in range(at, number):
            offset += self._size(one)
        for one in range(number, at):
            offset -= self._size(one)
        self._cursor = number, offset
        return offset

    # Windows

    def _window_around(self, number: int, side: int = 1) -> _Window:
        """With so many cases on each side; one that is there already may have more."""
        low, high = max(0, number - side), min(len(self._cases), number + side + 1)
        window = self._window
        if window is not None and window.low <= low and high <= window.high:
            return window
        return self._known_window(low, high)

    def _known_window(self, low: int, high: int) -> _Window:
        window = self._window
        if window is None or (window.low, window.high) != (low, high):
            self._window = window = _Window(low, high, self._tree_of(low, high))
        return window

    def _tree_of(self, low: int, high: int) -> Tree:
        parts = [self._head]
        for number in range(low, high):
            lead = self._leads[number]
            # The first one in a list has no comma before it.
            parts.append(lead.replace(",", " ", 1) if number == low and low else lead)
            parts.append(self._cases[number].text)
        parts.append(self._tail)
        text = "".join(parts)
        grown = len(text) - len(self._head) - len(self._tail)
        nodes = [
            Node(case.data(), len(case.text), len(lead))
            for case, lead in zip(self._cases[low:high], self._leads[low:high], strict=True)
        ]
        frame = self._frame_root()
        children = tuple(
            member.holding([node.value for node in nodes], member.size + grown, tuple(nodes))
            if member.key == self._key
            else member
            for member in frame.children or ()
        )
        value = {member.key: member.value for member in children}
        root = frame.holding(value, frame.size + grown, children)
        return Tree(text, root, lambda: (case.text for case in self._cases))

    def _frame_root(self) -> Node:
        """The text without any case, whose values are those that are there already."""
        text = self._head + self._tail
        if self._frame_tree is None or self._frame_tree.text != text:
            self._frame_tree = Tree.parse(text)
            # What is not edited stays the same object; of a key given twice the last one counts.
            for member in {node.key: node for node in self._frame_tree.root.children or ()}.values():
                member.value = self._frame[member.key]
        return self._frame_tree.root

    def _adopt(self, window: _Window, tree: Tree, splices: Sequence[Splice]) -> list[Splice]:
        """What splices made of a window; the same splices, for the whole text."""
        if not splices:
            return []
        splices = list(self._of_whole_text(window, splices))
        if cases_node(tree, self._key or "") is not None:
            self._absorb(window, tree)
        else:
            # Another list is that of the cases now, or none.
            self._renew(applied(self.chunks().text, splices))
        return splices

    def _of_whole_text(self, window: _Window, splices: Iterable[Splice]) -> Iterator[Splice]:
        before = self._offset_of(window.low)
        end = len(window.tree.text) - len(self._tail)
        for splice in splices:
            start = splice.start
            if start > end:
                start += before + sum(map(self._size, range(window.high, len(self._cases))))
            else:
                end += len(splice.new) - len(splice.old)
                start += before
            yield Splice(start, splice.old, splice.new)

    def _absorb(self, window: _Window, tree: Tree) -> None:
        place = tree.place((self._key or "",))
        before = window.tree.place((self._key or "",)).nodes
        known = {
            id(node.value): case
            for node, case in zip(before, self._cases[window.low : window.high], strict=True)
            if isinstance(node.value, dict)
        }
        leads: list[str] = []
        cases: list[StoredCase] = []
        at = place.start + 1
        for child in place.nodes:
            begin, end = at + child.lead, at + child.extent
            leads.append(tree.text[at:begin])
            cases.append(known.get(id(child.value)) or StoredCase(tree.text[begin:end], child.value))
            at = end
        if window.low:
            leads[0] = self._leads[window.low]
        else:
            self._frame = {**tree.root.value, self._key or "": []}
        self._head, self._tail = tree.text[: place.start + 1], tree.text[at:]
        self._leads[window.low : window.high] = leads
        self._cases[window.low : window.high] = cases
        self._window = _Window(window.low, window.low + len(cases), tree)
        self._frozen = None


def _side(edit: Edit) -> int:
    """How many cases on each side an edit looks at: more than those right beside it to see their form."""
    return _AROUND if isinstance(edit, Put | Insert) and isinstance(edit.value, dict | list) else 1
