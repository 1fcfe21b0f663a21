"""Tests of promptfoo as eval cases: a config in YAML or JSON, or a table of tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from evaltui.core.conversation.drafting import propose_eval_id
from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import spoken_texts, text_content
from evaltui.core.model.file_kinds import is_promptfoo
from evaltui.core.model.model_errors import validate_model
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.documents.json_text import parse, text_or_problem
from evaltui.documents.yaml_text import YAML_SUFFIXES, parse_yaml
from evaltui.exchange.imported import (
    ImportedCase,
    ImportedCases,
    Json,
    NotTaken,
    Report,
    UnusableSourceError,
    with_unspecified,
)
from evaltui.exchange.promptfoo_assertions import (
    CONVERSATION_RUBRIC,
    FILE,
    MATCH_TYPES,
    NO_COUNTERPART,
    Expectations,
    Requirement,
    expectations_of,
    rules_of_case,
)
from evaltui.exchange.row_cases import contents_of_messages
from evaltui.exchange.row_files import CSV_SUFFIXES, read_rows
from evaltui.project.eval_sets import data_of
from evaltui.text.values import value_in_words

_CODE_SUFFIXES = (".js", ".cjs", ".mjs", ".ts", ".py", ".rb", ".sh")
_TEXT_SUFFIXES = (".txt", ".md", ".json", *YAML_SUFFIXES)
_VARIABLE = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_HISTORY = "_conversation"
_ELSEWHERE = "settings of promptfoo's own runs"
# The agent is named on the command line of `evaltui run`.
_OF_NO_CASE = {
    "prompts",
    "tests",
    "defaultTest",
    "scenarios",
    "providers",
    "targets",
    "description",
    "$schema",
}
_OF_TESTS = {"description", "vars", "assert", "metadata", "options"}
_OF_OPTIONS = {"prefix", "suffix", "disableVarExpansion"}
_SHORT_FORM = re.compile(
    r"(?P<type>(?:not-)?(?:trajectory:)?[a-z][a-z-]*)(?:\((?P<threshold>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?",
    re.DOTALL,
)
_USUAL_VARIABLES = ("prompt", "question", "query", "input", "message")
_SHORT_TYPES = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}
# Thresholds in tables that those of configs differ from.
_TABLE_THRESHOLDS = {"similar": 0.8}
# Types that may stand before a colon; other texts with a colon are expected responses.
_TYPED = re.compile(
    r"(not-)?(equals|i?contains(-(all|any|json))?|regex|starts-with|is-json|similar|rouge-n|llm-rubric|grade|g-eval|"
    r"factuality|answer-relevance|model-graded-\w+|context-\w+|cost|latency|levenshtein|perplexity(-score)?|"
    r"javascript|fn|eval|python|webhook|classifier|moderation|is-\w[\w-]*|bleu|meteor|word-count|"
    r"trajectory:[a-z-]+)(\(|:|$)"
)


@dataclass(frozen=True)
class _Test:
    """A test, with that of `defaultTest` in it."""

    data: Json
    source: str
    """File, or file and line."""
    path: JsonPath
    """Its path in the file; () for a row of a table."""


@dataclass
class _Turn:
    """A turn of a case: the user's contents, and the expectations after the last of them."""

    contents: Sequence[Json]
    expectations: Expectations
    test: _Test


@dataclass
class _Suite:
    """A suite that is being read."""

    path: Path
    data: Json
    not_taken: list[NotTaken] = field(default_factory=list)

    def leave_out(self, path: JsonPath, reason: str, source: str = "") -> None:
        """Reports a part of the suite's file, or of another `source`."""
        self.not_taken.append(NotTaken(source or str(self.path), path, reason))


def cases_of_suite(path: Path) -> ImportedCases:
    """The cases of a config or a table of tests. Raises UnusableSourceError."""
    suite = _Suite(path, _data(path))
    for name in suite.data:
        if name not in _OF_NO_CASE:
            suite.leave_out((name,), _ELSEWHERE)
    template = _prompt(suite)
    groups: dict[str, list[_Turn]] = {}
    for number, test in enumerate(_expanded(suite, _tests(suite))):
        key = _conversation(test, template) or f"\n{number}"
        if (turn := _turn(suite, test, template)) is not None:
            groups.setdefault(key, []).append(turn)
    if not groups:
        reason = f": {suite.not_taken[-1].reason}" if suite.not_taken else ""
        raise UnusableSourceError(f"{path}: no test is a case{reason}")
    cases: dict[str, ImportedCase] = {}
    turns = [turn for group in groups.values() for turn in group]
    kinds = _kinds_of_rubrics(turns)
    for key, group in groups.items():
        case = _case(suite, key, group, set(cases))
        if case is not None:
            if kinds - _kinds_of_rubrics(group):
                # A rubric of another case is judged in that case only.
                case = replace(case, case=case.case | {OWN_KEY: UNSPECIFIED})
            cases[case.eval_id] = case
    return ImportedCases(list(cases.values()), suite.not_taken, criteria=_criteria(suite, [*groups.values()]))


# Files


def is_suite(path: Path) -> bool:
    """Whether a file is a config of promptfoo, or a table with its columns."""
    if path.suffix.lower() in CSV_SUFFIXES:
        try:
            rows = read_rows(path).rows
        except UnusableSourceError:
            return False
        return bool(rows) and any(name.startswith("__expected") for name in rows[0].values)
    return True if path.suffix.lower() in YAML_SUFFIXES else is_promptfoo(_any_data(path))


def _data(path: Path) -> Json:
    if path.suffix.lower() in CSV_SUFFIXES:
        return {"tests": f"{FILE}{path.name}"}
    data = _any_data(path)
    if isinstance(data, Problem):
        raise UnusableSourceError(f"{path}{f':{data.line}' if data.line else ''}: {data.message}")
    if isinstance(data, list):
        return {"tests": data}
    if not isinstance(data, dict) or not data.keys() & {"tests", "scenarios"}:
        raise UnusableSourceError(f"{path}: not a promptfoo config: it has no tests")
    return data


def _any_data(path: Path) -> Any:
    return _json_of(path, text_or_problem(path))


def _json_of(path: Path, text: str | Problem) -> Any | Problem:
    """The data of a file as JSON: dates and other values of YAML are texts."""
    data = data_of(path, text)
    return data if isinstance(data, Problem) else json.loads(json.dumps(data, default=str))


def _text(suite: _Suite, name: str, path: JsonPath) -> str | None:
    """The text of a file that a config names; None, which is reported, where it cannot be read."""
    file = suite.path.parent / name.removeprefix(FILE)
    if file.suffix in _CODE_SUFFIXES:
        suite.leave_out(path, f"{file.name} is code, which is not run")
        return None
    text = text_or_problem(file)
    if isinstance(text, Problem):
        suite.leave_out(path, f"{file.name}: {text.message}")
        return None
    return text


# Prompts


def _prompt(suite: _Suite) -> str:
    """The template of the first prompt; `{{prompt}}` where there is none."""
    prompts = suite.data.get("prompts")
    items = prompts if isinstance(prompts, list) else [] if prompts is None else [prompts]
    for number in range(1, len(items)):
        suite.leave_out(("prompts", number), "cases are made with the first prompt")
    first = items[0] if items else None
    if isinstance(first, dict):
        first = first.get("raw") or first.get("id")
    if not isinstance(first, str):
        return "{{prompt}}" if suite.path.suffix.lower() not in CSV_SUFFIXES else ""
    if first.startswith(FILE) or (
        Path(first).suffix in (*_TEXT_SUFFIXES, *_CODE_SUFFIXES) and "\n" not in first
    ):
        text = _text(suite, first, ("prompts", 0))
        return "{{prompt}}" if text is None else re.split(r"^---\s*$", text, flags=re.MULTILINE)[0].strip()
    return first


def _messages(suite: _Suite, test: _Test, template: str) -> list[Json]:
    """The contents of a test's prompt; empty, which is reported, where it has none."""
    variables = test.data["vars"]
    if _HISTORY in template or not template:
        # The turns before this one are other tests; this one has the last variable of the template.
        names = [name for name in _VARIABLE.findall(template) if name in variables]
        names = names or [name for name in _USUAL_VARIABLES if name in variables]
        names = names or [name for name in variables if name != _HISTORY][:1]
        template = f"{{{{{names[-1]}}}}}" if names else ""
    report = _reporter(suite, test)
    options = test.data.get("options") or {}
    template = f"{options.get('prefix') or ''}{template}{options.get('suffix') or ''}"
    if unknown := _unknown(template, variables):
        report((), f"the prompt has {unknown!r}, which is no variable of the test")
        return []
    if (messages := _chat(template)) is not None:
        rendered = _rendered(messages, variables)
        return contents_of_messages(rendered, lambda path, reason: report((), f"prompt: {reason}"))
    text = _rendered(template, variables)
    return [text_content("user", text)] if text.strip() else []


def _unknown(template: str, variables: Mapping[str, Any]) -> str:
    """The first expression of a template that is more than a variable with a value; "" for none."""
    for expression in _TEMPLATE.findall(template):
        variable = _VARIABLE.fullmatch(expression)
        if variable is None or _variable(variable, variables) == expression:
            return str(expression)
    return ""


def _chat(template: str) -> list[Any] | None:
    """The messages of a prompt in JSON or YAML; None for a plain text."""
    if template.lstrip()[:1] not in ("[", "-"):
        return None
    data = parse(template)
    data = parse_yaml(template) if isinstance(data, Problem) else data
    is_chat = isinstance(data, list) and all(isinstance(item, dict) and "role" in item for item in data)
    return list(data) if isinstance(data, list) and is_chat else None


def _rendered(value: Any, variables: Mapping[str, Any]) -> Any:
    """A value with the variables of a test in its texts; unknown ones stay."""
    if isinstance(value, list):
        return [_rendered(item, variables) for item in value]
    if isinstance(value, dict):
        return {name: _rendered(item, variables) for name, item in value.items()}
    return (
        _VARIABLE.sub(lambda match: _variable(match, variables), value) if isinstance(value, str) else value
    )


def _variable(match: re.Match[str], variables: Mapping[str, Any]) -> str:
    value: Any = variables
    for step in match[1].split("."):
        if not isinstance(value, dict) or step not in value:
            return match[0]
        value = value[step]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Tests


def _tests(suite: _Suite) -> Iterator[_Test]:
    """The tests of a suite, those of scenarios included."""
    yield from _listed(suite, suite.data.get("tests"), str(suite.path), ("tests",))
    scenarios = suite.data.get("scenarios")
    for number, scenario in enumerate(scenarios if isinstance(scenarios, list) else []):
        path: JsonPath = ("scenarios", number)
        if not isinstance(scenario, dict):
            suite.leave_out(path, f"must be an object, is {value_in_words(scenario)}")
            continue
        tests = list(_listed(suite, scenario.get("tests"), str(suite.path), (*path, "tests")))
        configs = scenario.get("config")
        for index, config in enumerate(configs if isinstance(configs, list) else [{}]):
            place = _Test(config, str(suite.path), (*path, "config", index))
            default = _well_formed(suite, place).data
            for test in tests:
                yield _Test(_merged(default, test.data), test.source, test.path)


def _listed(suite: _Suite, tests: Any, source: str, path: JsonPath) -> Iterator[_Test]:
    if isinstance(tests, str):
        yield from _of_file(suite, tests, path)
        return
    for number, item in enumerate(tests if isinstance(tests, list) else []):
        where = (*path, number)
        if isinstance(item, str):
            yield from _of_file(suite, item, where)
        elif isinstance(item, dict):
            yield from _checked(suite, _Test(item, source, where))
        else:
            suite.leave_out(where, f"a test must be an object, is {value_in_words(item)}", source)


def _of_file(suite: _Suite, name: str, path: JsonPath) -> Iterator[_Test]:
    """The tests of another file."""
    file = suite.path.parent / name.removeprefix(FILE)
    if "://" in name.removeprefix(FILE):
        suite.leave_out(path, f"{name} is not a file")
    elif file.suffix.lower() in (*CSV_SUFFIXES, ".jsonl"):
        read = read_rows(file)
        suite.not_taken += read.not_taken
        for row in read.rows:
            members = _test_of_cells(row.values) if row.is_csv else row.values
            yield from _checked(suite, _Test(members, row.source, ()))
    elif (text := _text(suite, name, path)) is not None:
        data = _json_of(file, text)
        if isinstance(data, Problem):
            raise UnusableSourceError(f"{file}{f':{data.line}' if data.line else ''}: {data.message}")
        yield from _listed(suite, data if isinstance(data, list) else [data], str(file), ())


def _test_of_cells(cells: Mapping[str, str]) -> Json:
    """A row of a table as a test. Source: `testCaseFromCsvRow` of promptfoo."""
    test: Json = {"vars": {}, "assert": [], "metadata": {}, "options": {}}
    thresholds: dict[int, float] = {}
    for name, cell in cells.items():
        word, _, rest = name.partition(":")
        if name.startswith("__expected"):
            test["assert"] += [_short_assertion(cell.strip())] if cell.strip() else []
        elif name in ("__prefix", "__suffix"):
            test["options"][name.removeprefix("__")] = cell
        elif word == "__metadata" and rest:
            test["metadata"] |= {rest.removesuffix("[]"): cell} if cell.strip() else {}
        elif word == "__config" and (match := re.fullmatch(r"__expected(\d*):threshold", rest)):
            thresholds |= {int(match[1] or 1) - 1: float(cell)} if cell.strip() else {}
        elif name.startswith("__"):
            test |= {name.removeprefix("__"): cell} if cell.strip() else {}
        else:
            test["vars"][name] = cell
    for number, threshold in thresholds.items():
        if number < len(test["assert"]):
            test["assert"][number]["threshold"] = threshold
    return test


def _short_assertion(text: str) -> Json:
    """`type(threshold):value` as an assertion; a text of another form is the expected response."""
    if text.startswith(FILE):
        return {"type": "javascript" if Path(text).suffix != ".py" else "python", "value": text}
    match = _SHORT_FORM.fullmatch(text) if _TYPED.match(text) else None
    if match is None:
        return {"type": "equals", "value": text}
    kind = match["type"]
    value = (match["value"] or "").strip()
    assertion: Json = {"type": _SHORT_TYPES.get(kind, kind), "value": value}
    if kind.startswith("trajectory:"):
        data = parse(value)
        assertion["value"] = value if isinstance(data, Problem) else data
    threshold = match["threshold"] or _TABLE_THRESHOLDS.get(kind)
    return assertion | ({"threshold": float(threshold)} if threshold else {})


def _expanded(suite: _Suite, tests: Iterator[_Test]) -> Iterator[_Test]:
    """Tests with the default test, and one for each combination of variables that are lists."""
    default = suite.data.get("defaultTest")
    if isinstance(default, str):
        suite.leave_out(("defaultTest",), "a file; write the default test into the config")
    else:
        default = _well_formed(suite, _Test(default or {}, str(suite.path), ("defaultTest",))).data
    for test in tests:
        data = _merged(default, test.data)
        variables = {name: _of_variable(suite, test, name, value) for name, value in data["vars"].items()}
        is_expanded = not (data.get("options") or {}).get("disableVarExpansion")
        lists = [
            [(name, item) for item in value]
            for name, value in variables.items()
            if isinstance(value, list) and name != _HISTORY and is_expanded
        ]
        for combination in product(*lists):
            own = {**variables, **dict(combination)}
            # Variables may have others in their texts.
            own = {
                name: _rendered(value, {other: text for other, text in own.items() if other != name})
                for name, value in own.items()
            }
            yield _Test({**data, "vars": own}, test.source, test.path)


_KINDS = {"vars": dict, "options": dict, "metadata": dict, "assert": list}


def _checked(suite: _Suite, test: _Test) -> Iterator[_Test]:
    """A test as `_well_formed`; none where its variables are in a file."""
    if isinstance(test.data.get("vars"), str):
        suite.leave_out((*test.path, "vars"), "variables of a file", test.source)
    else:
        yield _well_formed(suite, test)


def _well_formed(suite: _Suite, test: _Test) -> _Test:
    """A test without members of another type, which are reported."""
    if not isinstance(test.data, dict):
        suite.leave_out(test.path, f"must be an object, is {value_in_words(test.data)}", test.source)
        return replace(test, data={})
    data = dict(test.data)
    for name, kind in _KINDS.items():
        value = data.get(name)
        if not (value is None or isinstance(value, kind)):
            expected = "a list" if kind is list else "an object"
            reason = f"must be {expected}, is {value_in_words(value)}"
            suite.leave_out((*test.path, name), reason, test.source)
            del data[name]
    return replace(test, data=data)


def _of_variable(suite: _Suite, test: _Test, name: str, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(FILE):
        return value
    text = _text(suite, value, (*test.path, "vars", name))
    return "" if text is None else text.strip()


def _merged(default: Any, test: Json) -> Json:
    """A test with the members of a default one."""
    default = default if isinstance(default, dict) else {}
    merged = {**default, **test}
    for name in ("vars", "options", "metadata"):
        merged[name] = {**(default.get(name) or {}), **(test.get(name) or {})}
    merged["default_assert"] = [*default.get("default_assert", ()), *(default.get("assert") or ())]
    merged["assert"] = test.get("assert") or []
    return merged


def _conversation(test: _Test, template: str) -> str:
    """The name of the conversation that a test is a turn of; "" for a test of its own."""
    named = test.data["metadata"].get("conversationId")
    if named is not None:
        return str(named)
    return "conversation" if _HISTORY in template else ""


def _turn(suite: _Suite, test: _Test, template: str) -> _Turn | None:
    report = _reporter(suite, test)
    contents = _messages(suite, test, template)
    if not contents:
        report((), "no message of the user")
        return None
    for name, value in test.data.items():
        if name not in _OF_TESTS and name != "default_assert" and value not in (None, "", {}, []):
            report((name,), NO_COUNTERPART)
    for name, value in (test.data["options"] or {}).items():
        if name not in _OF_OPTIONS and value not in (None, ""):
            report(("options", name), NO_COUNTERPART)
    for name in test.data["metadata"]:
        if name != "conversationId":
            report(("metadata", name), NO_COUNTERPART)
    assertions = list(_assertions(suite, test))
    expectations = expectations_of(
        test.source, assertions, lambda path, reason: suite.leave_out(path, reason, test.source)
    )
    return _Turn(contents, expectations, test)


def _assertions(suite: _Suite, test: _Test) -> Iterator[tuple[JsonPath, Any]]:
    """The assertions of a test, those of the default test first, each with its path."""
    templates, variables = suite.data.get("assertionTemplates"), test.data["vars"]
    default: JsonPath = ("defaultTest", "assert")
    own: JsonPath = (*test.path, "assert")
    for path, items in ((default, test.data["default_assert"]), (own, test.data["assert"])):
        for number, item in enumerate(items):
            assertion = _resolved(item, templates)
            if unknown := _unknown(json.dumps(assertion, ensure_ascii=False), variables):
                reason = f"has {unknown!r}, which is no variable of the test"
                suite.leave_out((*path, number), reason, test.source)
            else:
                yield (*path, number), _rendered(assertion, variables)


def _resolved(assertion: Any, templates: Any) -> Any:
    """An assertion, in place of a reference to it."""
    reference = assertion.get("$ref") if isinstance(assertion, dict) else None
    name = str(reference or "").rpartition("/")[2]
    return templates.get(name, assertion) if reference and isinstance(templates, dict) else assertion


def _reporter(suite: _Suite, test: _Test) -> Report:
    return lambda path, reason: suite.leave_out((*test.path, *path), reason, test.source)


# Cases


def _kinds_of_rubrics(turns: Sequence[_Turn]) -> set[str]:
    return {kind for turn in turns for kind, _ in turn.expectations.rubrics}


def _case(suite: _Suite, key: str, turns: Sequence[_Turn], used_ids: set[str]) -> ImportedCase | None:
    conversation: list[Json] = []
    case_rubrics: list[str] = []
    answers: list[Json] = []
    for turn in turns:
        for content in turn.contents:
            if content["role"] == "user":
                conversation.append({"user_content": content})
            elif conversation and spoken_texts([content]):
                conversation[-1]["final_response"] = content
        conversation[-1] |= _stated(turn.expectations, len(conversation))
        case_rubrics += [text for kind, text in turn.expectations.rubrics if kind == CONVERSATION_RUBRIC]
        answers += [{**check, "turn": len(conversation) - 1} for check in turn.expectations.answers]
    rules = rules_of_case(
        [turn.expectations for turn in turns],
        lambda args, reason: suite.leave_out(args.path, reason, args.source),
    )
    first = turns[0].test
    description = first.data.get("description")
    named = key if not key.startswith("\n") else description if isinstance(description, str) else ""
    eval_id = propose_eval_id(named or spoken_texts([conversation[0]["user_content"]])[0], used_ids)
    case: Json = {"eval_id": eval_id, "conversation": conversation}
    if case_rubrics:
        case["rubrics"] = [
            _rubric(f"goal_{number}", text, CONVERSATION_RUBRIC)
            for number, text in enumerate(case_rubrics, 1)
        ]
    case = with_unspecified(case)
    model, problems = validate_model(EvalCase, case)
    if model is None:
        suite.leave_out(first.path, f"a case cannot hold this: {problems[0]}", first.source)
        return None
    place = NotTaken(first.source, first.path, "").place
    return ImportedCase(case, place, rules=rules, answers=answers)


def _stated(expectations: Expectations, number: int) -> Json:
    """The members of a turn, which is number `number` of its case, from 1."""
    turn: Json = {}
    if expectations.response is not None:
        turn["final_response"] = text_content("model", expectations.response)
    if expectations.calls:
        turn["intermediate_data"] = {"tool_uses": expectations.calls}
    rubrics = [(kind, text) for kind, text in expectations.rubrics if kind != CONVERSATION_RUBRIC]
    if rubrics:
        turn["rubrics"] = [
            _rubric(f"turn_{number}_{place}", text, kind) for place, (kind, text) in enumerate(rubrics, 1)
        ]
    return turn


def _rubric(rubric_id: str, text: str, kind: str) -> Json:
    return {"rubric_id": rubric_id, "rubric_content": {"text_property": text}, "type": kind}


_LIMITS = ("cost_usd", "seconds")


def _criteria(suite: _Suite, groups: Sequence[Sequence[_Turn]]) -> Mapping[str, Any]:
    """The criteria of the set: they hold for all cases, so each is the weakest that a test asks for.

    `groups` are the turns of each case, whose limits add up.
    """
    turns = [turn for group in groups for turn in group]
    criteria: dict[str, Any] = {}
    if match_types := [item for turn in turns for item in turn.expectations.match_types]:
        weakest = min((item.value for item in match_types), key=MATCH_TYPES.index)
        is_exact = weakest == "EXACT"
        criteria["tool_trajectory_avg_score"] = 1.0 if is_exact else {"threshold": 1.0, "match_type": weakest}
        _report_others(suite, match_types, weakest, "match type")
    by_metric: dict[str, list[Requirement]] = {}
    for turn in turns:
        for metric, requirements in turn.expectations.thresholds.items():
            by_metric.setdefault(metric, []).extend(requirements)
    for metric, requirements in by_metric.items():
        if metric in _LIMITS and any(metric not in turn.expectations.thresholds for turn in turns):
            for requirement in requirements:
                reason = f"{metric} would limit every case, and other tests have no such limit"
                suite.leave_out(requirement.path, reason, requirement.source)
            continue
        weakest = min(item.value for item in requirements)
        if metric in _LIMITS:
            weakest = max(sum(turn.expectations.limit(metric) for turn in group) for group in groups)
        criteria[metric] = weakest
        _report_others(suite, requirements, weakest, f"threshold of {metric}")
    return criteria


def _report_others(suite: _Suite, requirements: Sequence[Requirement], value: Any, what: str) -> None:
    for requirement in requirements:
        if requirement.value != value:
            reason = f"{what} {requirement.value}: a set has one, here {value}"
            suite.leave_out(requirement.path, reason, requirement.source)
