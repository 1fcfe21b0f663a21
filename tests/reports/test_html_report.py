"""The HTML report: one file that needs nothing else, escapes everything, and stays small."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
from example_runs import case, failed, mixed, passed, report
from hypothesis import given
from hypothesis import strategies as st
from report_pages import HOSTILE, events_of, hostile, hostile_case, judged, many

from evaltui.core.compare.diff import align_calls
from evaltui.core.compare.explain import sentence
from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import RunSummary, summarize
from evaltui.core.model.outcome import Call, ErrorInfo, ResponseDiff, Status, TurnResult
from evaltui.core.model.text_diff import AuthoredText
from evaltui.core.secrets import Secrets
from evaltui.reports.html import bodies as pages
from evaltui.reports.html.page import html_report
from evaltui.reports.html.templates import own_text
from evaltui.runs.report import ReportedCases
from evaltui.text.figures import ordinal
from evaltui.text.values import visible
from evaltui.tui.theme import THEMES

TWO_MEGABYTES = 2 * 1024 * 1024
# What our templates are made of. Nothing of it loads, embeds or sends anything but the icon, which is empty.
TAGS = {
    *("html", "head", "meta", "link", "title", "style", "body", "header", "h1", "h2", "h4", "p", "span", "b"),
    *("dl", "div", "dt", "dd", "details", "summary", "pre", "input", "button", "main", "section", "dialog"),
    *("table", "tbody", "tr", "th", "td", "kbd", "form", "script", "ul", "li", "br", "svg", "rect", "code"),
}


VOID = {"meta", "link", "input", "br"}


class Read(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.styles: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self._raw: str | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._divide(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._raw = tag if tag in ("script", "style") else None
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.remove(tag)

    def handle_endtag(self, tag):
        self._raw = None
        assert self.open.pop() == tag
        self._divide(tag)

    def _divide(self, tag):
        """What are words of their own."""
        if tag not in ("span", "b", "code"):
            self.texts.append(" ")

    def handle_data(self, data):
        if self._raw == "script":
            attributes, text = self.scripts.pop()
            self.scripts.append((attributes, text + data))
        elif self._raw == "style":
            self.styles.append(data)
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def values(self, name: str) -> list[str]:
        return [value for known, value in self.attributes if known == name]

    def bodies(self) -> dict[str, list[str]]:
        """Those that are data, by block."""
        return {
            attributes["id"]: json.loads(gzip.decompress(base64.b64decode(text)))
            for attributes, text in self.scripts
            if attributes.get("type") == "application/octet-stream"
        }


@cache
def large() -> str:
    return "".join(html_report(many()))


def test_one_file_that_loads_nothing_and_runs_only_its_own_script():
    found = Read("".join(html_report(judged())))
    assert set(found.tags) <= TAGS
    assert [*found.values("src"), *found.values("href"), *found.values("action")] == ["data:,"]
    ((_, script),) = found.scripts
    (style,) = found.styles
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [value for value in found.values("content") if "default-src" in value]
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "https:" not in policy


def is_harmless(page: str) -> Read:
    """Tags and attributes are those of our templates, and no control character is left."""
    found = Read(page)
    assert set(found.tags) <= TAGS
    assert found.open == []
    assert len([one for one in found.scripts if one[0].get("type") != "application/octet-stream"]) == 1
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "style"]
    assert found.values("href") == ["data:,"]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)
    page.encode()
    return found


def test_hostile_texts_stay_texts():
    found = is_harmless("".join(html_report(hostile())))
    for text in HOSTILE:
        assert " ".join(visible(text).split()) in found.text


@given(st.text(st.characters(codec=None), max_size=40))
def test_any_text_stays_a_text(text):
    one = hostile_case(text, text)
    page = "".join(html_report(report(one, agent=text, notes=(text,), events=lambda _: {0: events_of(text)})))
    assert " ".join(visible(text).split()) in is_harmless(page).text


def test_a_thousand_cases_with_a_hundred_failures_fit_in_two_megabytes():
    assert len(large().encode()) <= TWO_MEGABYTES


def test_what_did_not_pass_is_html_first_and_the_rest_is_data():
    found = Read(large())
    data = found.bodies()
    in_data = sum(map(len, data.values()))
    assert 1_000 - pages.MAX_CASES <= in_data <= 900
    # All those that failed can be read without a script.
    assert found.text.count("unexpected call notify_user; final state kitchen.degrees is") >= 200
    assert not [body for block in data.values() for body in block if "unexpected call" in body]
    places = found.values("data-at")
    assert len(places) == len(set(places)) == in_data
    block, number = places[-1].split(".")
    assert "hello 999" in data[f"block-{block}"][int(number)]


def test_beyond_two_hundred_failing_cases_are_data_too():
    found = Read("".join(html_report(many(250, 250))))
    assert sum(map(len, found.bodies().values())) == 50
    assert all("set_temperature" in body for bodies in found.bodies().values() for body in bodies)


def test_large_cases_are_data_before_there_are_two_hundred():
    one = failed()
    big = replace(one, turns=(*one.turns, *[replace(one.turns[1], user="x" * 19_000)] * 20))
    found = Read("".join(html_report(report(*(replace(big, eval_id=f"case_{n}") for n in range(10))))))
    assert 2 < sum(map(len, found.bodies().values())) < 10


def test_long_texts_are_cut_and_say_so_and_differences_in_them_are_seen():
    long = "word " * 60_000
    before, after = f"{long} THEN {long}", f"{long} NOW {long}"
    one = failed()
    turn = replace(
        one.turns[1], response=ResponseDiff(before, after), user=long, unscored=(AuthoredText("agent", long),)
    )
    error = ErrorInfo("ValueError", long, kind="agent")
    page = "".join(html_report(report(replace(one, turns=(one.turns[0], turn), error=error))))
    assert len(page) < 250_000
    text = Read(page).text
    assert text.count("more characters, in the JSON report …") >= 5
    assert "THEN" in text
    assert "NOW" in text


def test_a_call_out_of_order_says_where_it_is_expected():
    calls = align_calls([Call("dim", {}), Call("ask", {})], [Call("ask", {}), Call("dim", {})])
    turn = TurnResult("these calls", calls, ResponseDiff("Done.", "Done."))
    (moved,) = [diff for diff in turn.calls if diff.op == "moved"]
    page = "".join(html_report(report(case("swapped", Status.FAILED, turns=(turn,)))))
    assert f"out of order, expected {ordinal(moved.place + 1)}" in page


def test_the_same_run_makes_the_same_report(monkeypatch):
    monkeypatch.setattr(pages, "MAX_CASES", 20)
    assert "".join(html_report(many(40, 30))) == "".join(html_report(many(40, 30)))


def test_without_scripts_the_verdict_every_row_and_why_can_be_read():
    run = mixed()
    text = Read("".join(html_report(run))).text
    for one in run.cases:
        assert one.eval_id in text
        assert sentence(one) in text
    assert "✓ 1 passed ✗ 1 failed ! 1 error ≈ 2 flaky – 1 not evaluated" in text
    assert "TimeoutError: no response within 30 s" in text
    assert "set_temperature ≠ set_temperature" in text
    assert 'degrees 19 ≠ degrees "19" string, expected integer' in text
    assert "The kitchen is now 19 °C. ≠ The kitchen is set to 19 °C. 0.77 < 0.80" in text
    assert "root_agent: Let me check. not scored" in text
    assert 'kitchen.degrees 19 ≠ kitchen.degrees "19"' in text
    assert "pass^k 0.60 0.30 0.10 0.00" in text
    assert "Repeat 2 of 5 failed" in text
    # The details of a run that was not stored are not known.
    assert text.count("No trace stored") == len(run.cases)


def test_what_judges_say_and_the_trace_are_there():
    text = Read("".join(html_report(judged()))).text
    for said in (
        "judged by gemini-2.5-flash, 2 of 2 answered",
        "✗ no 1/5 polite Says please and thank you It shouts\\x1b[2J at the user.",
        "contradictory It is 30 °C there.",
        "invalid 3× 19 is not 21.",
        "= 9 equal calls",
        "model Find a flight → get_mode 612 → 38 0.50 s",
        'tool get_mode q "Find a flight" → {"result": "Find a flight"} 0.10 s',
        "evaltui run my_agent thermostat:night",
        "650 tokens",
    ):
        assert said in text


def test_links_of_cases_in_sets_with_one_id_differ():
    run = many(4, 1)
    (info,) = run.sets
    twin = replace(info, path="other.evalset.json")
    cases = [replace(one, path=path) for one in run.cases for path in ("", "other.evalset.json")]
    twins = replace(run, cases=ReportedCases(cases), sets=(info, twin))
    found = Read("".join(html_report(twins)))
    anchors = [value for value in found.values("id") if "case_" in value]
    assert len(anchors) == len(set(anchors)) == 8
    assert "evaltui run my_agent 'thermostat:case_00000'" not in found.text


def test_cases_of_one_id_have_links_of_their_own():
    found = Read("".join(html_report(report(case("a b", Status.PASSED), case("a b", Status.PASSED)))))
    assert [value for value in found.values("id") if "a b" in value] == ["thermostat:a b", "thermostat:a b~2"]


def test_what_changed_since_the_baseline():
    before, after = passed("night"), failed("night")
    sides = [RunSummary(name, {one.id: summarize(one)}) for name, one in (("old", before), ("new", after))]
    found = Read("".join(html_report(report(after, comparison=compare(*sides)))))
    assert "regression 1" in found.text
    assert "compared with old (1 case, 1 pass)" in found.text
    assert found.values("data-change") == ["regression", "broken"]


@pytest.mark.parametrize("run", [report(), replace(mixed(), seconds=None)], ids=["no case", "no time"])
def test_what_is_not_known_is_left_out(run):
    text = Read("".join(html_report(run))).text
    assert ("No case run" in text) is not bool(run.cases)
    assert ("took" in text) is (run.seconds is not None)


def test_secrets_are_masked_in_traces_as_the_report_is(tmp_path):
    key = "AIza" + "x" * 35
    secrets = Secrets({})
    run = secrets.masked(report(failed(), events=lambda _: secrets.masked({0: events_of(key)})))
    assert key not in "".join(html_report(run))


def test_the_colours_are_those_of_the_themes():
    css = own_text("report.css")
    dark, light = THEMES
    shown = dict(re.findall(r"--([\w-]+): light-dark\((#\w+, #\w+)\);", css))
    assert len(shown) > 20
    for name, colours in shown.items():
        own = getattr(light, name, None), getattr(dark, name, None)
        if own == (None, None):
            own = light.variables[name], dark.variables[name]
        assert colours == f"{own[0]}, {own[1]}", name
    # No colour stands anywhere else.
    assert len(re.findall(r"#[0-9A-Fa-f]{6}", css)) == 2 * len(shown)
