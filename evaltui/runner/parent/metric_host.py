"""A process for custom metric functions or judges, and what can be computed of a plan here."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from evaltui.core.metrics.preflight import SetToCheck, preflight
from evaltui.core.metrics.requirements import Facts, GeminiAccess, gemini_access
from evaltui.core.metrics.scoring import as_adk_has_it
from evaltui.core.model.events import Json
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode
from evaltui.files.folders import agent_folder, env_file, loads_env_file
from evaltui.files.import_names import import_name
from evaltui.files.schedulers import is_elsewhere
from evaltui.runner.errors import HostLostError
from evaltui.runner.parent.gate.requests import CallGate, GatedRequest
from evaltui.runner.parent.host_console import OnConsole
from evaltui.runner.parent.supervisor import IMPORT_TIMEOUT, Host
from evaltui.runner.plan import RunPlan


@dataclass(eq=False)
class _Request:
    """A request under way; `alone` is whether it was the only one all the time."""

    alone: bool


class MetricHost:
    """Started with the first metric or question, and again after one that brought it down."""

    def __init__(
        self,
        timeout: float,
        on_console: OnConsole,
        python: Path | None = None,
        gate: CallGate[Any] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`variables` come on top of the environment of this process."""
        self._gate = gate
        self._python = python
        self._variables = variables
        self._timeout = timeout
        self._on_console = on_console
        self._host: Host | None = None
        self._imported: set[str] = set()
        self._under_way: list[_Request] = []
        self._one_by_one = asyncio.Lock()

    async def answer(self, message: Json) -> Json:
        """What a request comes to, see `MetricCalls`.

        Raises RequestFailedError, HostLostError, AgentBrokenError or RunStoppedError.
        """
        host = await self._running_host()
        request = _Request(alone=not self._under_way)
        for other in self._under_way:
            other.alone = False
        self._under_way.append(request)
        try:
            return await self._put(message, host, self._imported)
        except HostLostError:
            if request.alone:
                raise
        finally:
            self._under_way.remove(request)
        # Which of them did it shows where each is by itself.
        async with self._one_by_one:
            by_itself = self._start()
            try:
                await self._load(by_itself)
                return await self._put(message, by_itself, set())
            finally:
                await by_itself.close()

    async def _put(self, message: Json, host: Host, imported: set[str]) -> Json:
        """The answer of this host, which has `imported` these functions."""
        if message["op"] == "metric" and message["path"] not in imported:
            # What takes long because it is the first time does not count as time of the metric.
            function = {key: message[key] for key in ("agent_folder", "path")}
            await host.request({"op": "import", **function}, IMPORT_TIMEOUT, lambda _: None)
            imported.add(message["path"])
        gated = GatedRequest(self._gate, self._timeout) if self._gate else None
        return await host.request(message, self._timeout, lambda _: None, gated=gated)

    async def _running_host(self) -> Host:
        lost = self._host
        if lost is not None and lost.alive:
            return lost
        # Before anything is awaited: whoever asks meanwhile gets the same one.
        host = self._host = self._start()
        self._imported = set()
        await self._load(host)
        if lost is not None:
            await lost.kill()
        return host

    def _start(self) -> Host:
        return Host("the metric", self._python, variables=self._variables)

    async def _load(self, host: Host) -> None:
        host.listen(self._on_console)
        await host.load(None, time.monotonic(), IMPORT_TIMEOUT)

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()

    async def kill(self) -> None:
        """Ends its process by force."""
        if self._host is not None:
            await self._host.kill()


def has_module(name: str, agent_folder: Path, python: Path | None = None) -> bool:
    """Whether the child process would find this module for an agent, going by the files there are.

    True in another Python than evaltui's: only that one knows what is installed there, and how.
    """
    if python is not None:
        return True
    importlib.invalidate_caches()
    folder = agent_folder.resolve()
    return any(
        _is_there(spelling.split("."), places)
        for spelling in _spellings(name, folder)
        for places in (*([str(one)] for one in import_name(folder).folders), *_above(spelling, folder), None)
    )


def _spellings(name: str, folder: Path) -> Iterator[str]:
    yield name
    head, _, rest = name.partition(".")
    if head == "agent":
        # `adk eval` knows the agent's package under this name.
        yield f"{folder.name}.{rest}" if rest else folder.name


def _above(name: str, folder: Path) -> Iterator[list[str]]:
    """The path may start further up: `agents.my_agent.metrics`."""
    head = name.partition(".")[0]
    return ([str(one.parent)] for one in folder.parents if one.name == head)


def _is_there(parts: Sequence[str], places: Sequence[str] | None) -> bool:
    """`places` are the folders to look in; None is wherever Python itself looks."""
    for number, part in enumerate(parts):
        try:
            if number == 0 and places is None:
                spec = importlib.util.find_spec(part)
            else:
                spec = PathFinder.find_spec(part, places)
        except (ImportError, ValueError):
            # Of a module without a spec, such as __main__.
            return False
        if spec is None:
            return False
        places = list(spec.submodule_search_locations or ())
    return True


def checked(plan: RunPlan, gemini: GeminiAccess | None = None) -> RunPlan:
    """The plan with a check of every metric that it asks for.

    `gemini` is how judges reach their models; None: as from this machine, or in a way that nobody knows yet.
    """
    sets = [
        SetToCheck(
            one.eval_set_id,
            one.cases,
            as_adk_has_it(one.config) if plan.adk_verdicts else one.config,
            plan.path_of(one),
        )
        for one in plan.sets
    ]
    recorded = (
        plan.path_of(one)
        for one in plan.sets
        if (file := plan.recordings_path(one)) is not None and file.is_file()
    )
    facts = facts_of(plan.agent_dir, plan.record, recorded, plan.agent.interpreter.executable)
    if gemini is None and is_elsewhere(plan.scheduler) and not plan.agent.url:
        gemini = GeminiAccess(serves_other_names=facts.gemini.serves_other_names)
    return replace(plan, checks=preflight(sets, replace(facts, gemini=gemini or facts.gemini)))


def facts_of(
    agent_dir: Path,
    record: RecordMode = DEFAULT_MODE,
    recorded: Iterable[str] = (),
    python: Path | None = None,
) -> Facts:
    """What is known of this machine and an agent. `recorded` are the sets with recordings, as in `CaseId`."""
    folder = agent_folder(agent_dir)
    return Facts(
        gemini=gemini_here(environment_of(agent_dir)),
        has_module=cache(partial(has_module, agent_folder=folder, python=python)),
        record=record,
        recorded=frozenset(recorded),
    )


def gemini_here(environment: Mapping[str, str]) -> GeminiAccess:
    """How a process of this machine with this environment reaches Gemini."""
    return gemini_access(environment, default_credentials=_has_default_credentials(environment))


def environment_of(agent_dir: Path) -> Mapping[str, str]:
    """What the agent's process has: the environment, and what its .env file adds to that."""
    found = env_file(agent_dir) if loads_env_file() else None
    if found is None:
        return os.environ
    from dotenv import dotenv_values

    added = {name: value for name, value in dotenv_values(found).items() if value is not None}
    return added | dict(os.environ)


def _has_default_credentials(environment: Mapping[str, str]) -> bool:
    """Whether Google's own library would find credentials, as far as files and variables tell."""
    if given := environment.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return Path(given).is_file()
    config = environment.get("CLOUDSDK_CONFIG")
    gcloud = Path(config) if config else Path.home() / ".config" / "gcloud"
    if (gcloud / "application_default_credentials.json").is_file():
        return True
    # On Google's own machines, which say so, there is a server for them.
    return "K_SERVICE" in environment or "GCE_METADATA_HOST" in environment or _is_on_compute_engine()


def _is_on_compute_engine() -> bool:
    try:
        name = Path("/sys/class/dmi/id/product_name").read_text(encoding="utf-8")
    except OSError:
        return False
    return name.startswith("Google")
