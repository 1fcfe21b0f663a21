"""`evaltui listen`: spans that agents send become sessions, each scored against its nearest case."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from evaltui.commands.network import address_in_words, check_token, token_of
from evaltui.commands.output import (
    UsageError,
    agent_of,
    complain,
    settings_of,
    width,
    write_lines,
    write_stderr,
    write_stdout,
)
from evaltui.core.compare.explain import summary
from evaltui.core.model.outcome import MetricResult
from evaltui.core.secrets import Secrets
from evaltui.project.agent_address import AgentAddress
from evaltui.project.hosts import is_loopback
from evaltui.project.packages import MissingExtraError
from evaltui.project.settings import secrets_of
from evaltui.project.workspace import open_workspace
from evaltui.runner.interrupts import INTERRUPTED, run_interruptible
from evaltui.runs.selection import RunRequest
from evaltui.runs.sessions import Address, Listener, Pattern, ScoredSession, open_listener, pattern_in_words
from evaltui.text.figures import counted
from evaltui.text.lines import Line, wrap
from evaltui.text.lines import cut as cut_line
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible
from evaltui.traces.receiver.spool import SpoolError, SpoolInUseError

_LAST_SECONDS = 8.0
"""Seconds in which sessions are still scored at the end."""
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT"


def listen(options: argparse.Namespace) -> int:
    """Listen until it is interrupted; returns the exit code."""
    try:
        if not options.agent_dir.exists():
            raise UsageError(f"{options.agent_dir} does not exist")
        if options.token_env is not None:
            options.token = token_of(options.token_env, options.agent_dir)
        _check(options)
        return run_interruptible(_listen(options, agent_of(options)))
    except (MissingExtraError, SpoolError, SpoolInUseError) as error:
        return complain("listen", error)
    except OSError as error:
        return complain("listen", address_in_words(error, options.host, options.port))


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError."""
    if options.token == "":
        raise UsageError("--token is empty")
    if options.token is None and not is_loopback(options.host):
        raise UsageError(
            f"--host {options.host} lets other machines send: name a token that they have to have, "
            "with --token-env VARIABLE or --token TOKEN"
        )
    if options.token is not None:
        check_token(options.token)


async def _listen(options: argparse.Namespace, agent: AgentAddress) -> int:
    request = RunRequest(agent, settings=settings_of(options))
    address = Address(options.host, options.port, options.token or "")
    is_json = options.format == "json"
    async with open_listener(request, address) as listener:
        output = _SessionOutput(secrets_of(agent.folder), is_json=is_json)
        write_lines(_first_lines(listener, request, address), to_stderr=is_json)
        try:
            await output.follow(listener.sessions())
        except asyncio.CancelledError:
            # Ctrl-C: what has come is not left for the next time, unless it is very much.
            try:
                async with asyncio.timeout(_LAST_SECONDS):
                    await output.follow(listener.last_sessions())
            except TimeoutError:
                write_stderr("evaltui listen: not all sessions scored; the next `evaltui listen` goes on")
        except BrokenPipeError:
            return INTERRUPTED
        output.end(listener)
    return INTERRUPTED


def _first_lines(listener: Listener, request: RunRequest, address: Address) -> list[Line]:
    sets = open_workspace(request.agent_dir).sets
    name = visible(request.agent_dir.resolve().name)
    lines: list[Line] = [
        [(f"listening on {listener.url} for {name} ({counted(len(sets), 'eval set')}); ctrl+c ends", "bold")],
        [(f"OTEL_EXPORTER_OTLP_ENDPOINT={listener.url}", "muted")],
        [(_CONTENT, "muted")],
    ]
    if address.token:
        lines.insert(2, [("OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20TOKEN", "muted")])
    return lines


class _SessionOutput:
    """Writes each session, and a summary of all sessions at the end."""

    def __init__(self, secrets: Secrets, *, is_json: bool) -> None:
        self._secrets = secrets
        self._is_json = is_json
        self._sessions: dict[str, tuple[Pattern, ...]] = {}
        self._remarks: set[str] = set()

    async def follow(self, sessions: AsyncIterator[ScoredSession]) -> None:
        async for session in sessions:
            self._sessions[session.id] = session.new_patterns
            shown = self._secrets.masked(replace(session, conversation=None))
            if self._is_json:
                write_stdout(json.dumps(session_json(shown), ensure_ascii=False) + "\n")
            else:
                # What an agent does not record is so in each of its sessions.
                fresh = tuple(remark for remark in shown.remarks if remark not in self._remarks)
                self._remarks.update(fresh)
                write_lines(session_lines(replace(shown, remarks=fresh), width()))

    def end(self, listener: Listener) -> None:
        patterns = Counter(
            pattern for session_patterns in self._sessions.values() for pattern in session_patterns
        )
        counts = listener.counts
        parts = [counted(len(self._sessions), "session"), counted(counts.spans, "span")]
        if counts.rejected:
            parts.append(f"{counts.rejected} without ids left out")
        if counts.refused:
            parts.append(f"{counted(counts.refused, 'request')} refused")
        write_lines(
            [*end_lines(patterns.most_common(), width()), [(", ".join(parts), "bold")]],
            to_stderr=self._is_json,
        )
        if not self._sessions and counts.spans:
            write_stderr("evaltui listen: no conversation of an agent was complete among these spans")


_MAX_ID = 24


def session_lines(session: ScoredSession, width: int) -> Iterator[Line]:
    """The lines of a session: its case and the reason for its outcome, then further remarks."""
    name = visible(cut(session.id, _MAX_ID))
    line: Line = [glyph(session.status), (f" {name}  ", "")]
    line.append((session.case_in_words, "" if session.case else "warning"))
    line.append((f"  {session.why}", "" if session.result is not None else "muted"))
    yield cut_line(line, width)
    for pattern in session.new_patterns:
        yield from wrap([("    new trajectory  ", "warning"), (pattern_in_words(pattern), "")], width)
    for remark in session.remarks:
        yield from wrap([("    note  ", "warning"), (visible(remark), "muted")], width)


def session_json(session: ScoredSession) -> dict[str, Any]:
    """The JSON data of a session for `evaltui listen --format json`; unknown values are null."""
    result = session.result
    return {
        "session": session.id,
        "messages": list(session.messages),
        "case": {"path": session.case.path, "eval_id": session.case.eval_id} if session.case else None,
        "paired": session.is_paired,
        "status": result.status.value if result is not None else None,
        "summary": summary(result) if result is not None else None,
        "metrics": [_metric(part) for part in result.metrics] if result is not None else [],
        "problem": session.problem or None,
        "new_trajectories": [list(part) for part in session.new_patterns],
        "log": str(session.log) if session.log else None,
        "remarks": list(session.remarks),
    }


def _metric(metric: MetricResult) -> dict[str, Any]:
    return {
        "name": metric.name,
        "status": metric.status.value,
        "score": metric.score,
        "threshold": metric.threshold,
        "reason": metric.reason or None,
    }


def end_lines(counts: Sequence[tuple[Pattern, int]], width: int) -> Iterator[Line]:
    """The trajectories that no case has, each with the number of its sessions."""
    for pattern, count in counts:
        line: Line = [("new trajectory  ", "warning"), (pattern_in_words(pattern), "")]
        yield from wrap([*line, (f"  {counted(count, 'session')}", "muted")], width)
