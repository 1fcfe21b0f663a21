"""`evaltui export`: a stored run as OTLP, to a file or to an endpoint."""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO
from urllib.parse import unquote, urlsplit, urlunsplit

from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import UsageError, complain, settings_of, write_stderr
from evaltui.core.model.events import Json
from evaltui.files.settings import secrets_of
from evaltui.files.workspace import SelectionError
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.export import traces_of
from evaltui.runs.history import KeptRun, find_run, open_run
from evaltui.runs.log import own_version
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted
from evaltui.text.values import cut, visible
from evaltui.traces.writing.otlp import otlp_json

_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_TRACES = "/v1/traces"
_TIMEOUT = 30.0
_LONGEST_ANSWER = 300


class _NotTakenError(Exception):
    """The endpoint does not take the traces; the message says why."""


def export(options: argparse.Namespace) -> int:
    """Write or send the run; returns the exit code."""
    try:
        run = _run(options)
        groups = _documents(run, options.agent_dir)
        if options.endpoint is not None:
            return _send(groups, _url(options.endpoint), _headers(os.environ))
        _write(groups, options.output)
    except (UsageError, SelectionError, OSError, ValueError) as error:
        return complain("export", error)
    return 0


def _run(options: argparse.Namespace) -> KeptRun:
    store = RunStore.of(options.agent_dir, settings_of(options))
    path = find_run(store, options.run)
    if path.name.endswith(ADK_SUFFIX):
        raise UsageError(f"{path}: a result file of google-adk has no events; export a run of evaltui")
    return open_run(path)


def _documents(run: KeptRun, agent_dir: Path) -> Iterator[Json]:
    """A request for each conversation."""
    for group in traces_of(run, secrets_of(agent_dir)):
        yield otlp_json([group], own_version())


# To a file


def _write(documents: Iterator[Json], output: Path) -> None:
    if str(output) == "-":
        _write_to(sys.stdout, documents)
        return
    if not output.parent.is_dir():
        raise UsageError(f"-o: the folder {output.parent} does not exist")
    # Whoever reads the file meanwhile finds all of it, or what was there.
    beside = output.with_name(f".evaltui-{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("x", encoding="utf-8") as file:
            count = _write_to(file, documents)
        beside.replace(output)
    finally:
        beside.unlink(missing_ok=True)
    write_stderr(f"{visible(str(output))}: {counted(count, 'conversation')}")


def _write_to(file: TextIO, documents: Iterator[Json]) -> int:
    """One request with all of them; only one is in memory at a time."""
    file.write('{"resourceSpans": [')
    count = 0
    for document in documents:
        for group in document["resourceSpans"]:
            file.write((",\n" if count else "\n") + json.dumps(group))
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
    """As OpenTelemetry's exporters read them: `name=value` with commas between, percent-encoded."""
    given = next((environment[name] for name in _HEADERS if environment.get(name)), "")
    headers: dict[str, str] = {}
    for number, pair in enumerate(filter(str.strip, given.split(",")), 1):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            # The value may be a secret.
            raise UsageError(f"OTEL_EXPORTER_OTLP_HEADERS: header {number} is not NAME=VALUE")
        headers[unquote(name.strip())] = unquote(value.strip())
    return headers


def _send(documents: Iterator[Json], url: str, headers: Mapping[str, str]) -> int:
    import httpx

    sent = 0
    try:
        with httpx.Client(
            timeout=_TIMEOUT, headers={**headers, "content-type": "application/json"}
        ) as client:
            for document in documents:
                _check(client.post(url, content=json.dumps(document)))
                sent += 1
    except (_NotTakenError, httpx.HTTPError, httpx.InvalidURL) as error:
        why = str(error) or type(error).__name__
        write_stderr(f"evaltui export: {visible(url)} after {counted(sent, 'conversation')}: {visible(why)}")
        return HAD_ERRORS
    write_stderr(f"{visible(url)}: {counted(sent, 'conversation')}")
    return 0


def _check(answer: object) -> None:
    import httpx

    assert isinstance(answer, httpx.Response)
    if not answer.is_success:
        said = cut(" ".join(answer.text.split()), _LONGEST_ANSWER)
        raise _NotTakenError(f"{answer.status_code} {answer.reason_phrase} {said}".rstrip())
    try:
        partial = answer.json().get("partialSuccess") or {}
        rejected = int(partial.get("rejectedSpans") or 0)
    except (AttributeError, TypeError, ValueError):
        # What is no JSON tells of no span that was rejected.
        return
    if rejected:
        raise _NotTakenError(
            f"{counted(rejected, 'span')} rejected: {partial.get('errorMessage') or 'no reason'}"
        )
