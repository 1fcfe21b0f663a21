"""`evaltui export`: a stored run as OTLP, to a file or to an endpoint."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TextIO
from urllib.parse import unquote, urlsplit, urlunsplit

from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import UsageError, complain, settings_of, write_stderr
from evaltui.core.model.problems import SelectionError
from evaltui.documents.files import written_at_once
from evaltui.project.packages import own_version
from evaltui.project.settings import secrets_of
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.export import ConversationTraces, traces_of
from evaltui.runs.history import StoredRun, find_run, open_run
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, short_list
from evaltui.text.values import visible
from evaltui.traces.writing.otlp import otlp_json

_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_TRACES = "/v1/traces"


def export(options: argparse.Namespace) -> int:
    """Write or send the run; returns the exit code."""
    try:
        run = _run(options)
        left_out: list[str] = []
        groups = _some(run, traces_of(run, secrets_of(options.agent_dir), left_out))
        if options.endpoint is not None:
            code = _send(groups, _url(options.endpoint), _headers(os.environ))
        else:
            code = _write(groups, options.output)
    except (UsageError, SelectionError, OSError, ValueError) as error:
        return complain("export", error)
    if left_out:
        cases = f"{counted(len(left_out), 'case')} without a result or turns left out: {short_list(left_out)}"
        write_stderr(f"evaltui export: {visible(cases)}")
    return code


def _run(options: argparse.Namespace) -> StoredRun:
    store = RunStore.of(options.agent_dir, settings_of(options), options.module, options.url)
    path = find_run(store, options.run)
    if path.name.endswith(ADK_SUFFIX):
        raise UsageError(f"{path}: a result file of google-adk has no events; export a run of evaltui")
    return open_run(path)


def _some(run: StoredRun, groups: Iterator[ConversationTraces]) -> Iterator[ConversationTraces]:
    """Raises UsageError where there is none."""
    first = next(groups, None)
    if first is None:
        raise UsageError(f"run {run.id} has no conversation to export")
    return chain([first], groups)


# To a file


def _write(groups: Iterator[ConversationTraces], output: Path) -> int:
    if str(output) == "-":
        _write_to(sys.stdout, groups)
        return 0
    if not output.parent.is_dir():
        raise UsageError(f"-o: the folder {output.parent} does not exist")
    with written_at_once(output) as file:
        count = _write_to(file, groups)
    write_stderr(f"{visible(str(output))}: {counted(count, 'conversation')}")
    return 0


def _write_to(file: TextIO, groups: Iterator[ConversationTraces]) -> int:
    """Writes one request with all conversations; only one is in memory at a time."""
    file.write('{"resourceSpans": [')
    count = 0
    for group in groups:
        for spans in otlp_json([group], own_version())["resourceSpans"]:
            file.write((",\n" if count else "\n") + json.dumps(spans))
            count += 1
    file.write("\n]}\n")
    return count


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
