"""One printed line in full."""

from __future__ import annotations

from evaltui.text.values import visible, visible_lines
from evaltui.tui.pages.writer import Page
from evaltui.workbench.console import PrintedLine


def write_printed(page: Page, printed: PrintedLine) -> None:
    case = visible(printed.case.eval_id) if printed.case else "not known: it was not alone in its process"
    page.labelled("case", [(case, "" if printed.case else "dim")])
    page.blank()
    for line in visible_lines(printed.text):
        page.block([(line, "")], 2)
    if printed.cut:
        page.row((f"  … {printed.cut:,} more characters of this line are in the log of the run", "yellow"))
