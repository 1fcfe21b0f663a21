"""`evaltui export`: a stored run as OTLP or as results of agents-cli, an eval set in other formats."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import Any, TextIO, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import UsageError, complain, refused, settings_of, write_stderr
from evaltui.commands.target_set import existing_set
from evaltui.core.model.arg_rule import ArgRule, parse_arg_path
from evaltui.core.model.config import DEFAULT_CRITERIA, BaseCriterion, EvalConfig
from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import ABSENT, field_of, side_by_side, spelling_in
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem, errors_in
from evaltui.documents.case_file import CASES
from evaltui.documents.dataset import dataset_of
from evaltui.documents.dataset_meaning import meaning_of_case, names_at, parts_of, path_in
from evaltui.documents.files import written_at_once
from evaltui.documents.json_text import locate
from evaltui.exchange.imported import UnusableSourceError
from evaltui.exchange.promptfoo import cases_of_suite
from evaltui.exchange.promptfoo_assertions import RESPONSE_RUBRIC
from evaltui.exchange.row_writing import (
    cells_of_case,
    events_of_turn,
    lost_parts,
    row_of_case,
    table_of,
    text_of_content,
)
from evaltui.project.configs import find_config
from evaltui.project.eval_sets import SetData, read_eval_set, set_name
from evaltui.project.lint import format_problem
from evaltui.project.packages import own_version
from evaltui.project.settings import secrets_of
from evaltui.runs.export import ConversationTraces, results_of, traces_of
from evaltui.runs.history import StoredRun, find_run, open_run
from evaltui.runs.store import RunStore, is_adk_result
from evaltui.text.figures import counted, short_list
from evaltui.text.values import visible
from evaltui.traces.writing.otlp import otlp_json

PROVIDER = "echo"
"""The provider of a written suite, which repeats its prompt: the user replaces it."""
_TRAJECTORY, _RESPONSE = "tool_trajectory_avg_score", "response_match_score"
_MODES = {"EXACT": "exact", "IN_ORDER": "in_order"}
_RUBRICS = "rubric_based_final_response_quality_v1"
_WRITTEN_METRICS = {_TRAJECTORY, _RESPONSE, _RUBRICS}


def suite_of(set_id: str, cases: Sequence[Json], config: EvalConfig) -> Json:
    """A set as a config of promptfoo: a test for each turn, those of a case with one `conversationId`."""
    tests = [
        _test(case, number, config, set_id)
        for case in cases
        for number in range(len(field_of(case, "conversation") or []))
    ]
    return {"description": set_id, "prompts": ["{{prompt}}"], "providers": [PROVIDER], "tests": tests}


def lost_in_suite(suite: Json, case: Json) -> Iterator[tuple[JsonPath, str]]:
    """The parts of a case that its tests do not give when they are imported, each with the reason.

    `suite` has the tests of this case alone.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "suite.json"
        path.write_text(json.dumps(suite), encoding="utf-8")
        try:
            (imported,) = cases_of_suite(path).cases
        except (UnusableSourceError, ValueError):
            yield (), "no test can hold it: it has no message of the user"
            return
    read = imported.case
    paths: dict[JsonPath, None] = {}
    for where, before, after in side_by_side(meaning_of_case(case), meaning_of_case(read)):
        if before is ABSENT or after is ABSENT or before != after:
            paths[path_in(case, names_at(where))] = None
    yield from ((where, "a test has no place for it") for where in paths)
    if case.get(OWN_KEY) != UNSPECIFIED and read.get(OWN_KEY) == UNSPECIFIED:
        yield (OWN_KEY,), "absent responses and calls, which the case checks, are not checked after an import"


def lost_settings(config: EvalConfig, set_id: str) -> Iterator[str]:
    """The criteria, checks and rules of a config that tests have no place for, as sentences."""
    names = {*config.criteria, *config.evaltui.criteria}
    if others := sorted(names - _WRITTEN_METRICS):
        yield f"criteria {', '.join(others)}: left out; add assertions of your own"
    if rubrics := _options(config.criteria.get(_RUBRICS)).get("rubrics"):
        yield f"criteria {_RUBRICS}: {counted(len(rubrics), 'rubric')} left out: write them into turns"
    answers = [rule for rule in config.evaltui.answers if rule.set in (None, set_id)]
    if any(rule.numbers for rule in answers):
        yield 'evaltui.answers: "numbers" left out: no assertion compares numbers'
    if any(rule.agent for rule in answers):
        yield 'evaltui.answers: "agent" left out: a test has no agents'
    if any(rule.contains or rule.not_contains for rule in answers):
        yield "evaltui.answers: texts inside of words count, too, in icontains-all and not-icontains"
    rules = [rule for rule in config.evaltui.rules if rule.set in (None, set_id)]
    if others := sorted({_kind_of(rule) for rule in rules if not _is_written(rule)}):
        yield f"evaltui.rules: {', '.join(others)} left out: promptfoo compares these arguments by value"
    for name in ("thoughts", "outputs"):
        if getattr(config.evaltui, name) == "score":
            yield f'evaltui.{name}: "score" left out: promptfoo compares what its provider returns'
    if any(mark.set == set_id for mark in config.evaltui.turns):
        yield "evaltui.turns: marks left out: a test checks its turn"


def _kind_of(rule: ArgRule) -> str:
    return rule.match if isinstance(rule.match, str) else next(iter(rule.match.model_fields_set))


def _is_written(rule: ArgRule) -> bool:
    """Whether `trajectory:tool-args-match` has the rule: some of all arguments, or an ignored one."""
    steps = parse_arg_path(rule.arg)
    return (rule.match == "subset" and not steps) or (rule.match == "ignore" and len(steps) == 1)


def _test(case: Json, number: int, config: EvalConfig, set_id: str) -> Json:
    turns = field_of(case, "conversation")
    turn, eval_id = turns[number], str(field_of(case, "eval_id"))
    test: Json = {
        "description": eval_id,
        "vars": {"prompt": text_of_content(field_of(turn, "user_content"))},
        "assert": [
            *_call_assertions(turn, config, (set_id, eval_id)),
            *_response_assertions(turn, config),
            *_answer_assertions(config, set_id, eval_id, number),
            *_rubric_assertions(turn),
        ],
    }
    return test | ({"metadata": {"conversationId": eval_id}} if len(turns) > 1 else {})


def _call_assertions(turn: Json, config: EvalConfig, case: tuple[str, str]) -> Iterator[Json]:
    if _TRAJECTORY not in config.criteria:
        return
    calls = [part for event in events_of_turn(turn) for kind, part in parts_of(event) if kind == "call"]
    names = [str(call.get("name")) for call in calls]
    options = _options(config.criteria[_TRAJECTORY])
    if mode := _MODES.get(str(options.get("match_type", "EXACT"))):
        if names:
            yield {"type": "trajectory:tool-sequence", "value": {"mode": mode, "steps": names}}
    else:
        for name, count in Counter(names).items():
            yield {"type": "trajectory:tool-used", "value": {"name": name, "min": count}}
    for call in () if options.get("ignore_args") else calls:
        yield {
            "type": "trajectory:tool-args-match",
            "value": {"name": call.get("name"), "args": call["args"] or {}, **_matching(call, config, case)},
        }


def _matching(call: Json, config: EvalConfig, case: tuple[str, str]) -> Json:
    """How the arguments of a call are compared, by the rules for its tool."""
    rules = [
        rule
        for rule in config.evaltui.rules
        if rule.tool == call.get("name") and rule.set in (None, case[0]) and rule.case in (None, case[1])
    ]
    if any(rule.match == "subset" and rule.arg == "*" for rule in rules):
        return {"mode": "partial"}
    ignored = [
        str(parse_arg_path(rule.arg)[0]) for rule in rules if rule.match == "ignore" and _is_written(rule)
    ]
    return {"mode": "exact", **({"ignore": ignored} if ignored else {})}


def _response_assertions(turn: Json, config: EvalConfig) -> Iterator[Json]:
    text = text_of_content(field_of(turn, "final_response"))
    criterion = config.criteria.get(_RESPONSE)
    if text and criterion is not None:
        threshold = criterion.threshold if isinstance(criterion, BaseCriterion) else criterion
        yield {"type": "rouge-n", "value": text, "threshold": threshold}


def _answer_assertions(config: EvalConfig, set_id: str, eval_id: str, number: int) -> Iterator[Json]:
    for rule in config.answer_rules(set_id, eval_id):
        if rule.turn not in (None, number):
            continue
        if rule.contains:
            yield {"type": "icontains-all", "value": rule.contains}
        yield from ({"type": "not-icontains", "value": text} for text in rule.not_contains or ())
        if rule.regex is not None:
            yield {"type": "regex", "value": rule.regex}
        if rule.json_schema is not None:
            yield {"type": "is-json", "value": rule.json_schema}


def _rubric_assertions(turn: Json) -> Iterator[Json]:
    for rubric in field_of(turn, "rubrics") or []:
        text = field_of(field_of(rubric, "rubric_content") or {}, "text_property")
        if text and field_of(rubric, "type") in (None, RESPONSE_RUBRIC):
            yield {"type": "llm-rubric", "value": text}


def _options(criterion: Any) -> Mapping[str, Any]:
    return (criterion.model_extra or {}) if isinstance(criterion, BaseCriterion) else {}


_Item = TypeVar("_Item")
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_TRACES = "/v1/traces"


def export(options: argparse.Namespace) -> int:
    """Writes or sends the run or the set; returns the exit code."""
    try:
        if (options.run is None) == (options.set is None):
            raise UsageError("name either a run (--run) or an eval set (--set)")
        if options.set is not None:
            return _export_set(options)
        if options.format in ("rows", "promptfoo"):
            raise UsageError(f"--format {options.format} is for eval sets; name one with --set")
        run = _run(options)
        left_out: list[str] = []
        lacking = "a result or turns"
        if options.format == "dataset":
            lacking = "a complete result"
            code = _write_results(run, options, left_out)
        else:
            code = _export_traces(run, options, left_out)
    except (OSError, ValueError) as error:
        return complain("export", error)
    if left_out:
        cases = f"{counted(len(left_out), 'case')} without {lacking} left out: {short_list(left_out)}"
        write_stderr(f"evaltui export: {visible(cases)}")
    return code


def _run(options: argparse.Namespace) -> StoredRun:
    store = RunStore.of(options.agent_dir, settings_of(options), options.module, options.url)
    path = find_run(store, options.run)
    if is_adk_result(path):
        raise UsageError(f"{path}: a result file of google-adk has no events; export a run of evaltui")
    return open_run(path)


def _some(run: StoredRun, groups: Iterator[_Item]) -> Iterator[_Item]:
    """Raises UsageError where there is none."""
    first = next(groups, None)
    if first is None:
        raise UsageError(f"run {run.id} has no conversation to export")
    return chain([first], groups)


# To a file


def _export_traces(run: StoredRun, options: argparse.Namespace, left_out: list[str]) -> int:
    groups = _some(run, traces_of(run, secrets_of(options.agent_dir), left_out))
    if options.endpoint is not None:
        return _send(groups, _url(options.endpoint), _headers(os.environ))
    with _opened(options.output) as file:
        count = _write_items(file, '{"resourceSpans": [', map(json.dumps, _resource_spans(groups)), "\n]}\n")
    return _written(options.output, counted(count, "conversation"))


def _resource_spans(groups: Iterator[ConversationTraces]) -> Iterator[Json]:
    """The resources of one request with all conversations; only one of them is in memory at a time."""
    for group in groups:
        yield from otlp_json([group], own_version())["resourceSpans"]


def _write_results(run: StoredRun, options: argparse.Namespace, left_out: list[str]) -> int:
    _require_file(options)
    results = _some(run, results_of(run, secrets_of(options.agent_dir), left_out))
    if options.strict:
        results = iter([*results])
        if left_out:
            return refused("export", left_out)
    return _written(options.output, counted(_write_cases(options.output, results), "conversation"))


def _export_set(options: argparse.Namespace) -> int:
    if options.format == "otlp":
        raise UsageError("--set: needs --format dataset, rows or promptfoo")
    _require_file(options)
    path = existing_set(options.agent_dir, options.set, in_project=not options.url)
    read = read_eval_set(path)
    if read.eval_set is None:
        raise EvalSetError(errors_in(read.problems))
    if read.format == "dataset":
        raise UsageError(f"{path} is an EvaluationDataset; make an eval set of it with `evaltui migrate`")
    if read.format != "eval set":
        raise UsageError(f"{path} is of an old format; convert it with `evaltui migrate`")
    _warn_of_secrets(options.agent_dir, path, read)
    if options.format == "rows":
        return _export_rows(options, path, read)
    if options.format == "promptfoo":
        return _export_suite(options, path, read)
    name = read.eval_set.eval_set_id if str(options.output) == "-" else set_name(options.output)
    dataset, left_out = dataset_of(read.data, name)
    if left_out:
        write_stderr(*map(format_problem, locate(left_out, read.text, str(path))))
        if options.strict:
            return refused("export", left_out)
    if not dataset[CASES]:
        raise UsageError(f"{path} has no case that a dataset can hold")
    count = _write_cases(options.output, iter(dataset[CASES]))
    return _written(options.output, f"{counted(count, 'case')} of {path}")


def _warn_of_secrets(agent_dir: Path, path: Path, read: SetData) -> None:
    """Warns of secrets in cases: unlike a run, a set is exported as it is."""
    secrets = secrets_of(agent_dir)
    cases = field_of(read.data, CASES)
    with_secrets = [str(field_of(case, "eval_id")) for case in cases if secrets.without(case) != case]
    if with_secrets:
        number = counted(len(with_secrets), "case has", "cases have")
        warning = f"{path}: {number} secrets, which are exported as they are: {short_list(with_secrets)}"
        write_stderr(f"evaltui export: {visible(warning)}. Remove them before you share the file")


def _export_rows(options: argparse.Namespace, path: Path, read: SetData) -> int:
    """Writes a set as messages of OpenAI, a case per line, or as CSV where the file is named so."""
    is_csv = options.output.suffix.lower() == ".csv"
    config = find_config(path)
    set_id, block = _set_id(read), config.config.evaltui
    tags = config.config.tags(set_id)

    def row_of(case: Json) -> Json:
        of_case = tags.get(str(field_of(case, "eval_id")), ())
        return cells_of_case(case, of_case) if is_csv else row_of_case(case, of_case)

    names = {*config.config.criteria, *block.criteria} - {*DEFAULT_CRITERIA}
    settings = (
        [f"criteria {', '.join(sorted(names))}: left out: rows have no place for them"] if names else []
    )
    for name, entries in (("rules", block.rules), ("answers", block.answers), ("turns", block.turns)):
        if count := sum(entry.set in (None, set_id) for entry in entries):
            number = counted(count, "entry", "entries")
            settings.append(f"evaltui.{name}: {number} left out: rows have no place for them")

    def write(cases: list[Json]) -> str:
        rows = map(row_of, cases)
        return (
            table_of(rows) if is_csv else "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        )

    lost = partial(lost_parts, is_csv=is_csv)
    return _export_cases(options, path, read, lambda case: lost(case, row_of(case)), settings, write)


def _export_suite(options: argparse.Namespace, path: Path, read: SetData) -> int:
    """Writes a set as a config of promptfoo in JSON, which its YAML reader takes, too."""
    set_id, config = _set_id(read), find_config(path).config

    def write(cases: list[Json]) -> str:
        write_stderr(f'evaltui export: replace the provider "{PROVIDER}" by yours')
        return f"{json.dumps(suite_of(set_id, cases, config), indent=2, ensure_ascii=False)}\n"

    def lost(case: Json) -> Iterator[tuple[JsonPath, str]]:
        return lost_in_suite(suite_of(set_id, [case], config), case)

    return _export_cases(options, path, read, lost, list(lost_settings(config, set_id)), write)


def _export_cases(
    options: argparse.Namespace,
    path: Path,
    read: SetData,
    lost: Callable[[Json], Iterable[tuple[JsonPath, str]]],
    settings: Sequence[str],
    write: Callable[[list[Json]], str],
) -> int:
    """Writes the cases that a format can hold, and lists what it cannot.

    `lost` finds the parts of a case without a place, `()` for a whole case; `settings` are those of the
    config, as sentences. With `--strict` nothing is written where something is lost.
    """
    key = spelling_in(CASES, read.data)
    left_out: list[Problem] = []
    cases: list[Json] = []
    for index, case in enumerate(read.data[key]):
        parts = list(lost(case))
        left_out += (Problem.warning((key, index, *where), f"{why}; left out") for where, why in parts)
        cases += [] if any(not where for where, _ in parts) else [case]
    config = find_config(path).path or "config"
    notes = [format_problem(problem) for problem in locate(left_out, read.text, str(path))]
    notes += [f"{config}: {setting}" for setting in settings]
    for note in notes:
        write_stderr(visible(note))
    if notes and options.strict:
        return refused("export", notes)
    if not cases:
        raise UsageError(f"{path} has no case that this format can hold")
    text = write(cases)
    with _opened(options.output) as file:
        file.write(text)
    return _written(options.output, f"{counted(len(cases), 'case')} of {path}")


def _set_id(read: SetData) -> str:
    return read.eval_set.eval_set_id if read.eval_set else ""


def _require_file(options: argparse.Namespace) -> None:
    if options.endpoint is not None:
        raise UsageError("--endpoint is for traces only; write a file with -o")


@contextmanager
def _opened(output: Path) -> Iterator[TextIO]:
    """Raises UsageError where its folder does not exist."""
    if str(output) == "-":
        yield sys.stdout
        return
    if not output.parent.is_dir():
        raise UsageError(f"-o: the folder {output.parent} does not exist")
    with written_at_once(output) as file:
        yield file


def _write_items(file: TextIO, head: str, items: Iterator[str], tail: str) -> int:
    """Writes items with commas between them, one at a time; returns their number."""
    file.write(head)
    count = 0
    for count, item in enumerate(items, 1):
        file.write((",\n" if count > 1 else "\n") + item)
    file.write(tail)
    return count


def _write_cases(output: Path, cases: Iterator[Json]) -> int:
    texts = (indent(json.dumps(case, indent=2, ensure_ascii=False), " " * 4) for case in cases)
    with _opened(output) as file:
        return _write_items(file, f'{{\n  "{CASES}": [', texts, "\n  ]\n}\n")


def _written(output: Path, what: str) -> int:
    if str(output) != "-":
        write_stderr(visible(f"{output}: {what}"))
    return 0


# To an endpoint


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--endpoint: {visible(text)!r} is not a URL, e.g. http://localhost:4318")
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(_TRACES) else path + _TRACES))


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    """The headers in OpenTelemetry's variables: `name=value` pairs with commas between, percent-encoded."""
    text = next((environment[name] for name in _HEADERS if environment.get(name)), "")
    headers: dict[str, str] = {}
    for number, pair in enumerate(filter(str.strip, text.split(",")), 1):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            # The value may be a secret.
            raise UsageError(f"OTEL_EXPORTER_OTLP_HEADERS: header {number} is not NAME=VALUE")
        headers[unquote(name.strip())] = unquote(value.strip())
    return headers


def _send(groups: Iterable[ConversationTraces], url: str, headers: Mapping[str, str]) -> int:
    from evaltui.commands.sending import NotAcceptedError, Sending

    sending = Sending(url, headers, own_version())
    place = f"evaltui export: {visible(url)}"
    try:
        sending.send(groups)
    except NotAcceptedError as error:
        sending.refused.append(str(error))
    except KeyboardInterrupt:
        write_stderr(f"{place}: {sending.in_words}")
        raise
    for why in sending.refused:
        write_stderr(f"{place}: {why}")
    write_stderr(f"{place}: {sending.in_words}")
    return HAD_ERRORS if sending.refused else 0
