"""The JUnit XML report, for CI servers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import chain
from xml.etree import ElementTree as ET

from evaltui.core.compare.explain import sentence
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.compare.totals import totals_of
from evaltui.core.cost.cost_lines import estimate_note
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.spending import Payer, Spending
from evaltui.reports.details import MAX_WIDTH, case_details
from evaltui.runs.report import ReportedCases, RunReport
from evaltui.runs.run_header import SelectedSet
from evaltui.text.lines import draw
from evaltui.text.values import visible


def junit_report(report: RunReport) -> Iterator[str]:
    """The text of the report in pieces, one case at a time, with a suite for each set.

    Failed cases are failures; cases with an error and cases that were not evaluated are errors. A flaky case
    passes or fails by its policy, and its text has the number of passed runs; an undecided one is an error.
    Where sets share an id, names of suites and classes include the file. Characters that XML does not allow
    are escaped, and so are workflow commands that a CI service would run.
    """
    root = ET.Element("testsuites", name=visible(report.agent))
    if report.seconds is not None:
        root.set("time", f"{report.seconds:.3f}")
    _count(root, report.summaries, len(report.unscored))
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    suites = (_suite(eval_set, cases, report) for eval_set, cases in report.by_set())
    yield from _element_pieces(root, chain(suites, _unscored(report.unscored)), "\n")
    yield "\n"


def _suite(eval_set: SelectedSet, cases: ReportedCases, report: RunReport) -> Iterator[str]:
    suite = ET.Element(
        "testsuite",
        name=visible(report.name_of(eval_set)),
        time=f"{totals_of(tuple(cases.summaries)).seconds or 0.0:.3f}",
        timestamp=report.started.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    _count(suite, cases.summaries)
    properties = ET.Element("properties")
    values = {
        "eval_set": eval_set.file or eval_set.path,
        "config": _config(eval_set),
        "defaulted": ", ".join(eval_set.defaulted or ()),
        **({"config_not_used": eval_set.not_used} if eval_set.not_used else {}),
        **_cost(report.spent_in(eval_set)),
    }
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=visible(value))
    name = report.name_of(eval_set)
    elements = chain([properties], _testcases(cases, name, eval_set))
    yield from _element_pieces(suite, (_text(element, level=2) for element in elements), "\n  ")


def _unscored(sentences: Sequence[str]) -> Iterator[Iterator[str]]:
    """The suite with an error for each unscored part of the traces, where there is one."""
    if sentences:
        suite = ET.Element("testsuite", name="not scored")
        _count(suite, (), len(sentences))
        for name in map(visible, sentences):
            problem = {"message": name, "type": Status.NOT_EVALUATED.value}
            ET.SubElement(ET.SubElement(suite, "testcase", name=name, classname="traces"), "error", problem)
        yield _text(suite, level=1)


def _element_pieces(element: ET.Element, children: Iterable[Iterable[str]], margin: str) -> Iterator[str]:
    """The text of an element with child elements, one child at a time."""
    start = _xml_text(element).removesuffix(" />")
    before = f"{start}>"
    for child in children:
        yield f"{before}{margin}  "
        yield from child
        before = ""
    yield f"{start} />" if before else f"{margin}</{element.tag}>"


def _text(element: ET.Element, level: int) -> Iterator[str]:
    ET.indent(element, level=level)
    yield _xml_text(element)


def _xml_text(element: ET.Element) -> str:
    text = ET.tostring(element, encoding="unicode").replace("##", "#&#35;")
    return _COMMAND_AT_START.sub(r"\1&#58;:", text)


_COMMAND_AT_START = re.compile(r"^(\s*)::", re.MULTILINE)


def _cost(spent: Spending | None) -> dict[str, str]:
    """The properties with the models of judges and simulated users, and the known cost of the cases."""
    if spent is None:
        return {}
    cost, properties = spent.cost, dict[str, str]()
    payers: tuple[Payer, ...] = ("judge", "simulated user")
    for payer in payers:
        if models := spent.models_of(payer):
            properties[payer.replace(" ", "_")] = ", ".join(models)
    if cost.usd is not None:
        properties["cost_usd"] = f"{cost.usd:.10f}".rstrip("0").removesuffix(".")
    if not cost.is_exact:
        properties["cost"] = str(cost)
    if prices := estimate_note(spent):
        properties["cost_prices"] = prices
    return properties


def _config(eval_set: SelectedSet) -> str:
    return "as in the run log" if eval_set.defaulted is None else eval_set.config_path or "defaults"


def _count(element: ET.Element, cases: Iterable[CaseSummary], unscored: int = 0) -> None:
    tags = Counter([*(_tag(case.verdict) for case in cases), *["error"] * unscored])
    element.set("tests", str(tags.total()))
    element.set("failures", str(tags["failure"]))
    element.set("errors", str(tags["error"]))
    element.set("skipped", "0")


def _tag(verdict: Status) -> str:
    return {Status.PASSED: "", Status.FAILED: "failure"}.get(verdict, "error")


def _testcases(cases: ReportedCases, classname: str, eval_set: SelectedSet) -> Iterator[ET.Element]:
    for number, summary in enumerate(cases.summaries):
        tags = eval_set.tags.get(summary.eval_id, ())
        if summary.status is Status.PASSED and summary.decision is None and summary.runs == 1:
            # Nothing else is said of it: of many cases, most need not be read from the log.
            yield _testcase(summary.eval_id, summary.seconds or 0.0, classname, tags)
            continue
        case = cases[number]
        element = _testcase(case.eval_id, case.seconds, classname, tags)
        _add_reasons(element, case)
        yield element


def _testcase(eval_id: str, seconds: float, classname: str, tags: Sequence[str]) -> ET.Element:
    element = ET.Element(
        "testcase", name=visible(eval_id), classname=visible(classname), time=f"{seconds:.3f}"
    )
    if tags:
        properties = ET.SubElement(element, "properties")
        for name in tags:
            ET.SubElement(properties, "property", name="tag", value=visible(name))
    return element


def _add_reasons(element: ET.Element, case: CaseResult) -> None:
    """Adds the reason why a case failed, had an error or was flaky."""
    if tag := _tag(case.verdict):
        kind = _error_kind(case) if tag == "error" else case.status.value
        problem = ET.SubElement(element, tag, message=sentence(case), type=visible(kind))
        problem.text = "\n".join(draw(line, color=False) for line in case_details(case, MAX_WIDTH))
    elif case.status is Status.FLAKY or case.decision is not None or case.is_partly_evaluated:
        ET.SubElement(element, "system-out").text = sentence(case)


def _error_kind(case: CaseResult) -> str:
    """The kind of an error; its class where the kind is unknown."""
    if case.decision is not None and case.status is Status.NOT_EVALUATED:
        return case.status.value
    if case.error is not None:
        return case.error.kind or case.error.type
    return next(filter(None, case.error_kinds), None) or case.status.value
