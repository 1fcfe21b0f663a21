"""The details of cases in the HTML page: HTML for the first cases, compressed data for the others."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

from evaltui.core.model.outcome import CaseResult
from evaltui.reports.html.case_view import case_view
from evaltui.reports.html.rows import ListedSet
from evaltui.reports.html.templates import environment, markup
from evaltui.runs.report import RunReport
from evaltui.text.values import visible

# Cases that are HTML, those that did not pass first; the others are data that is read when they are opened.
MAX_CASES = 200
# Characters of HTML up to which further cases are HTML: any, and those that passed.
_MAX_CHARACTERS, _MAX_PASSED = 1_450_000, 1_000_000
# Cases of one piece of data.
_CASES_PER_BLOCK = 50
# Characters of data from which on it is in a file.
_MAX_BYTES_IN_MEMORY = 8 << 20


class Bodies:
    """Details of cases by anchor, as HTML or as a place in the data, most of which is in a temporary file."""

    def __init__(self, report: RunReport) -> None:
        self._report = report
        self._template = environment().get_template("case.html.j2")
        self._names = {eval_set.path: report.name_of(eval_set) for eval_set in report.sets}
        self.html: dict[str, Any] = {}
        self.places: dict[str, str] = {}
        """`2.17`: the number of a block, and of a case in it."""
        self._blocks = SpooledTemporaryFile(_MAX_BYTES_IN_MEMORY, "w+", encoding="ascii")  # noqa: SIM115
        self._block_count = 0

    def write(self, sets: Sequence[ListedSet]) -> None:
        """Writes the details of all listed cases, reading one case at a time."""
        cases = [(listed, number) for listed in sets for number in range(len(listed.cases))]
        written, waiting = 0, []
        for listed, number in sorted(cases, key=lambda place: place[0].summaries[place[1]].passes):
            anchor, case = listed.anchors[number], listed.cases[number]
            body = self._body(case)
            most = _MAX_PASSED if case.passed else _MAX_CHARACTERS
            if len(self.html) < MAX_CASES and written + len(body) <= most:
                self.html[anchor] = markup(body)
                written += len(body)
            else:
                waiting.append((anchor, body))
                if len(waiting) == _CASES_PER_BLOCK:
                    self._close(waiting)
                    waiting = []
        if waiting:
            self._close(waiting)

    def blocks(self) -> Iterator[str]:
        """The data blocks, in base64."""
        self._blocks.seek(0)
        for line in self._blocks:
            yield line.rstrip("\n")

    def _close(self, waiting: Sequence[tuple[str, str]]) -> None:
        for number, (anchor, _) in enumerate(waiting):
            self.places[anchor] = f"{self._block_count}.{number}"
        text = json.dumps([body for _, body in waiting])
        # Without the time: the same run makes the same report.
        packed = base64.b64encode(gzip.compress(text.encode(errors="backslashreplace"), mtime=0)).decode()
        self._blocks.write(f"{packed}\n")
        self._block_count += 1

    def _body(self, case: CaseResult) -> str:
        events = self._report.events(case.id)
        view = case_view(case, events, self._command(case))
        body: str = self._template.render(case=view)
        return body

    def _command(self, case: CaseResult) -> str:
        address = self._report.address
        # A comma would divide the id.
        if not address or "," in case.eval_id:
            return ""
        name = case.eval_set_id
        if Counter(self._names.values())[name] != 1:
            name = case.path
        return f"evaltui run {address} {shlex.quote(visible(f'{name}:{case.eval_id}'))}"
