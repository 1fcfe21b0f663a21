"""A set: its results, its config, the problems of its file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import Problem, Severity
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.files.workspace import Workspace
from evaltui.text.lines import Line
from evaltui.text.outcomes import COUNTED, NOT_RUN, WORDS, glyph
from evaltui.text.values import cut, show_value, visible
from evaltui.tui.pages.writer import Page, write_error, write_problems
from evaltui.workbench.chat.conversation import Transcript
from evaltui.workbench.results import Results, figure

# This page is written anew while results come in.
_MAX_LISTED = 50


def write_set_facts(page: Page, eval_set: EvalSetFile, opened: EvalSetFile | None) -> None:
    """What the file is, what scores it, and what is wrong with it; `opened` is None while it is read."""
    problems = opened.problems if opened else eval_set.problems
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if errors:
        page.text([("this file cannot be run before these are mended", "")], [("! error  ", "error")])
        page.blank()
        write_problems(page, errors, eval_set.path)
        page.blank()
    _write_facts(page, eval_set, opened)
    warnings = [problem for problem in problems if problem.severity is not Severity.ERROR]
    if warnings:
        page.blank()
        page.row(("Warnings", "bold"))
        write_problems(page, warnings, eval_set.path)


def write_set_results(page: Page, eval_set: EvalSetFile, errors: Sequence[Problem], results: Results) -> None:
    """How the cases of a set came out, and which of them did not pass."""
    if errors:
        page.text([(f"this file cannot be run: {visible(str(errors[0]))}", "")], [("! error  ", "error")])
        return
    _write_counts(page, eval_set, results)
    _write_attention(page, eval_set, results)


def _write_facts(page: Page, eval_set: EvalSetFile, opened: EvalSetFile | None) -> None:
    if eval_set.name and eval_set.name != eval_set.eval_set_id:
        page.labelled("name", [(visible(eval_set.name), "")])
    if opened and opened.eval_set and opened.eval_set.description:
        page.labelled("about", [(visible(opened.eval_set.description), "")])
    page.labelled("file", [(visible(str(eval_set.path)), "")])
    if eval_set.format and eval_set.format != "eval set":
        page.labelled("format", [(f"{eval_set.format}, from before the EvalSet schema", "")])
    if opened and opened.config:
        page.labelled("config", [(_config_place(opened.config.path, eval_set.path), "")])
        for metric in opened.config.config.metrics():
            needs = "" if metric.threshold is None else f"  needs {metric.threshold:g}"
            page.labelled("", [(visible(metric.metric_name), ""), (needs, "muted")])
    elif opened is None:
        page.labelled("", [("reading the cases …", "muted")])


def _config_place(path: Path | None, set_path: Path) -> str:
    if path is None:
        return "none: the defaults of ADK apply"
    return visible(f"{path.name} beside it" if path.parent == set_path.parent else str(path))


def _write_counts(page: Page, eval_set: EvalSetFile, results: Results) -> None:
    counts = results.counts(eval_set.case_path)
    counts[NOT_RUN] = max(0, len(eval_set.cases) - counts.total())
    page.row(("Cases", "bold"), (f"  {len(eval_set.cases)}", ""))
    for status in (*COUNTED, NOT_RUN):
        if counts[status]:
            page.row(("  ", ""), glyph(status), (f" {WORDS[status]:<14}{counts[status]:>6}", ""))


def _write_attention(page: Page, eval_set: EvalSetFile, results: Results) -> None:
    failing = sum(case.path == eval_set.case_path for case in results.attention)
    if not failing:
        return
    # It builds on the models, which are there once there are results, and not before the first frame.
    from evaltui.core.compare.explain import summary

    cases = (CaseId(eval_set.case_path, case.eval_id) for case in eval_set.cases)
    page.blank()
    page.row(("Did not pass", "bold"))
    for case_id in islice((one for one in cases if one in results.attention), _MAX_LISTED):
        if scored := results.get(case_id):
            name = cut(visible(case_id.eval_id), 40)
            head: Line = [
                ("  ", ""),
                glyph(scored.result.status),
                (f" {name}  {figure(scored.result)}  ", ""),
            ]
            page.hanging([*head, (summary(scored.result), "muted")], 6)
    if failing > _MAX_LISTED:
        page.row((f"    and {failing - _MAX_LISTED} more: f goes from one to the next", "muted"))


_MOST_STATE = 400


def write_no_sets(page: Page, workspace: Workspace) -> None:
    """Where was looked, what was passed over, and what to do."""
    page.text([(f"No eval sets yet in {visible(str(workspace.folder))}.", "bold")])
    page.blank()
    page.text(
        [
            (
                "In the list of cases (1), o writes a case in a new set and O makes a set. f5 finds what "
                "was saved there as NAME.evalset.json or NAME.test.json, and --set FILE opens one.",
                "",
            )
        ]
    )
    page.blank()
    page.text(
        [
            (
                "Looked in: the folder itself, eval*/ and test*/ in it, eval*/ and tests/ beside it and "
                "above, up to the root of its project.",
                "muted",
            )
        ]
    )
    if workspace.skipped:
        page.blank()
        page.row(("Passed over", "bold"))
    for skipped in workspace.skipped:
        page.hanging([(f"  {visible(str(skipped.path))}  ", ""), (visible(skipped.reason), "muted")], 4)


def write_nothing_said(page: Page, transcript: Transcript | None) -> None:
    """How a conversation begins, what can be done with it, and why the agent cannot be talked to."""
    if transcript is not None and transcript.broken is not None:
        page.text([("The agent cannot be talked to.", "bold")])
        page.blank()
        write_error(page, transcript.broken)
        page.blank()
        page.text([("The next message tries again, with the code as it is then.", "muted")])
        return
    page.text([("Nothing has been said yet.", "bold")])
    page.blank()
    page.text([("Write a message below, enter sends it.", "")])
    page.blank()
    if transcript is not None:
        _write_start(page, transcript)
    for key, what in (
        ("ctrl+n", "begins with a state, a user or a sub-agent of your choice"),
        ("ctrl+t", "makes a case of what was said"),
        ("c", "in the cases continues a case from its selected turn"),
    ):
        page.labelled(key, [(what, "muted")], "bold")


def _write_start(page: Page, transcript: Transcript) -> None:
    """What was chosen for the conversation."""
    session = transcript.session
    chosen = {"agent": transcript.agent_name or "", "user": session.user_id, "app": session.app_name}
    chosen["state"] = show_value(session.state, _MOST_STATE) if session.state else ""
    for label, value in chosen.items():
        if value:
            page.labelled(label, [(visible(value), "")])
    page.blank()
