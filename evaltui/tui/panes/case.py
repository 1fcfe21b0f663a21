"""What the selected case says, or its set."""

from __future__ import annotations

from collections.abc import Hashable

from evaltui.core.show import visible
from evaltui.reports.lines import Line
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.empty import write_no_sets
from evaltui.tui.pages.eval_set import write_set_facts
from evaltui.tui.pages.writer import Page
from evaltui.tui.pane import PagePane
from evaltui.workbench.actions import Scope


class CaseView(PagePane, can_focus=True, inherit_bindings=False):
    BINDINGS = bindings(Scope.CASE)

    def heading(self) -> Line:
        selection = self._workbench.selection
        if selection.path is None:
            return []
        if selection.eval_id is None:
            entry = self._workbench.entry(selection.path)
            return [(visible(entry.eval_set_id if entry else selection.path.name), "")]
        return [(visible(selection.eval_id), "")]

    def fingerprint(self) -> Hashable:
        selection = self._workbench.selection
        opened = self._workbench.opened(selection.path) if selection.path else None
        return id(self._workbench.workspace), selection.path, selection.case, id(opened)

    def write(self, page: Page) -> None:
        workbench = self._workbench
        if workbench.workspace is None:
            page.row(("looking for eval sets …", "dim"))
            return
        path, key = workbench.selection.path, workbench.selection.case
        entry = workbench.entry(path) if path else None
        if entry is None:
            write_no_sets(page, workbench.workspace)
            return
        opened = workbench.opened(entry.path)
        case = opened.case(key.eval_id) if opened and key else None
        if key is not None and opened is None:
            page.row(("reading the case …", "dim"))
        elif opened is None or case is None:
            write_set_facts(page, entry, opened)
        else:
            # Loads google.genai, which reading the set has done by now in a thread.
            from evaltui.tui.pages.case import write_case

            write_case(page, case, entry.eval_set_id, opened.config.config if opened.config else None)
