"""The settings and the selection of a run, which its file begins with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer

from evaltui.core.compare.repeats import RepeatRule
from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import OwnPrice, PassIf, Repeats
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import Status, worst_status
from evaltui.core.model.tags import Tags
from evaltui.core.model.variants import Variant
from evaltui.project.agent_files import is_of_user
from evaltui.project.folders import agent_file
from evaltui.project.interpreters import Interpreter
from evaltui.project.run_settings import RunSettings
from evaltui.runner.plan import rule_of_case
from evaltui.runs.run_kind import RunKind
from evaltui.runs.run_tables import with_all_fields
from evaltui.runs.shards import ShardsOfRun
from evaltui.text.figures import counted, plural


@dataclass(frozen=True)
class SelectedSet:
    """An eval set of a run with its selected cases.

    `path` is that of `CaseId`. `config` is the config that scored it, None where it is unknown. `whole` tells
    whether all cases were selected. `places` are the indices of the cases in the set, from 0, None where they
    are unknown. `tags` are by case id. `conversations` are the ids of scored conversations by case id, one
    for each repeat; None where the agent was run, or they are unknown.
    """

    path: str
    eval_set_id: str
    eval_ids: tuple[str, ...]
    config: Json | None = None
    whole: bool = False
    places: tuple[int, ...] | None = None
    tags: Tags = field(default_factory=dict)
    conversations: Mapping[str, tuple[str, ...]] | None = None
    more: Mapping[str, int] = field(default_factory=dict)
    """Numbers of runs by case id, for the cases that have more runs than the others."""
    fingerprint: str | None = None
    """Fingerprint of the text of its file; None where it is unknown."""
    file: str | None = None
    """Its file at the start; None where it is unknown."""
    config_path: str | None = None
    """The file of its config; None for ADK's defaults, and where it is unknown."""
    defaulted: tuple[str, ...] | None = None
    """Criteria of its config that are ADK's defaults; None where they are unknown."""
    not_used: str | None = None
    """A config in a folder above, which is for other sets; None without one."""

    unselected: tuple[str, ...] = ()
    """Fingerprints of its unselected cases, set at the start of a run; `RunFile.unselected` reads them."""

    @cached_property
    def scored_by(self) -> Json | None:
        """The normal form of its config; None without a config."""
        return None if self.config is None else normal_config(self.config)


@dataclass(frozen=True)
class MergedPart:
    """A run that others have results of, as they were merged or it was resumed."""

    id: str
    started: datetime
    resumed: str = ""
    """Id of the run that it resumed; "" for none."""
    cases: tuple[int, ...] = ()
    """The numbers of the cases in the other run that have its result, or were selected last by it."""


@dataclass(frozen=True)
class RunHeader:
    """The agent, the settings and the selection of a run."""

    sets: tuple[SelectedSet, ...] = ()
    settings: RunSettings = field(default_factory=RunSettings)
    """The settings; in a shard, with the limits for all shards together."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    number: int | None = None
    """Number of the run, from 1; None for a run outside of an agent's runs."""
    evaltui: str = ""
    """Version of evaltui that wrote the file; "" before it is written."""
    agent_dir: str = ""
    """Folder or file of the agent; "" where it is unknown."""
    agent_name: str | None = None
    """The sub-agent that was run as the root agent; None for the root agent."""
    module: str = ""
    """The dotted module name of the agent; "" for an agent of its folder."""
    url: str = ""
    """The URL of an agent behind a network; "" for an imported agent."""
    in_process: bool = False
    """Whether the agent was an object, run in the evaluating process."""
    interpreter: Interpreter | None = None
    """The agent's Python, with an empty `reason` for evaltui's own; None where it is unknown."""
    packages: Mapping[str, str] | None = None
    """The versions of the packages of that Python by their names; None where they are unknown."""
    of_adk: bool = False
    """Whether google-adk ran the agent, with unknown modes."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The agent's files and other read files of its project, with fingerprints."""
    read: tuple[str, ...] = ()
    """Files of the project that its processes opened for reading."""
    written: tuple[str, ...] = ()
    """Files of the project that its processes opened for writing."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the code of the user's metrics, judges and simulated users, by the paths of their
    functions."""
    recordings: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of recordings before the run, by path of the set."""
    config: str = ""
    """The config for all sets; "" where each set has its own."""
    initial_session: str = ""
    """The session at the start of sets in the old format; "" for none."""
    variant: Variant | None = None
    """The variant of the agent; None for no variant."""
    matrix: str = ""
    """The id of its matrix; "" for none."""
    variants: tuple[Variant, ...] = ()
    """All variants of its matrix, in order; empty where they are unknown."""
    shards: ShardsOfRun | None = None
    """The shards in this run; None for an undivided selection."""
    traces: tuple[str, ...] = ()
    """The scored traces, as the user named them; empty where the agent was run."""
    trace_files: Mapping[str, str] = field(default_factory=dict)
    """Files of these traces, relative to the agent's folder, with their SHA-256."""
    case_from: str = ""
    """The attribute that names the case of a conversation; "" for the usual ones."""
    only_paired: bool = False
    """Whether cases without a conversation were left out."""
    unpaired: int = 0
    """Number of scored conversations without a case."""
    lost: tuple[str, ...] = ()
    """Sentences about missing records of the scored traces."""
    session: str = ""
    """Id of the received session that was scored; "" for none."""
    resumed: str = ""
    """Id of the run that this run resumed; "" for none."""
    baseline: str = ""
    """Id of the baseline; "" for none."""
    parts: tuple[MergedPart, ...] = ()
    """The runs that were merged to this run; of a resumed run those whose results it reused."""
    preflight: tuple[MetricCheck, ...] = ()
    """Checks of the metrics' requirements before the run."""
    stopped: str = ""
    """Why the run was stopped early, such as its budget, as a sentence; "" where it was not."""

    @cached_property
    def own_data(self) -> frozenset[str]:
        """Files that its processes wrote, none that only its user writes."""
        return frozenset(name for name in self.written if not is_of_user(name))

    @property
    def of_traces(self) -> bool:
        """Whether recorded traces were scored instead of running the agent."""
        return bool(self.traces)

    @property
    def is_merged(self) -> bool:
        """Whether several runs were merged to this run."""
        return bool(self.parts) and not self.resumed

    @property
    def unscored(self) -> tuple[str, ...]:
        """Sentences about unscored parts of the traces."""
        count = self.unpaired
        match = plural(count, "matches", "match")
        return (*([f"{counted(count, 'conversation')} {match} no case"] if count else ()), *self.lost)

    def status_of(self, statuses: Iterable[Status]) -> Status:
        """The worst status of the cases; unscored parts of traces were not evaluated."""
        return worst_status([*statuses, Status.NOT_EVALUATED] if self.unscored else statuses)

    @property
    def ended_early(self) -> str:
        """The end of an incomplete run in a word."""
        return "stopped" if self.stopped else "interrupted"

    @cached_property
    def kind(self) -> RunKind:
        """The kind of the run."""
        variant = self.variant
        return RunKind(
            agent_file(self.agent_dir),
            self.module,
            self.agent_name or "",
            self.url,
            self.in_process,
            variant.name if variant and variant.changes else "",
            self.of_traces,
            self.settings.adk_verdicts,
        )

    def is_of(self, agent: RunKind) -> bool:
        """Whether the run is of this agent with any verdicts, or of traces of an unknown agent."""
        return self.of_traces or self.kind.agent == agent.agent

    def set_of(self, path: str) -> SelectedSet | None:
        """The set with a path; None where the run has no cases of it."""
        return next((eval_set for eval_set in self.sets if eval_set.path == path), None)

    def repeat_rule(self, eval_set: SelectedSet, eval_id: str, repeats: Repeats) -> RepeatRule:
        """The number of repeats of a case under a config with `repeats`.

        Raises ValueError for a case that could never pass.
        """
        ids = None if eval_set.conversations is None else len(eval_set.conversations.get(eval_id, ()))
        return rule_of_case(self.settings, repeats, ids, eval_set.more.get(eval_id))

    def selected(self) -> Iterator[tuple[CaseId, str]]:
        """The selected cases, each with its set id."""
        for eval_set in self.sets:
            yield from (
                (CaseId(eval_set.path, eval_id), eval_set.eval_set_id) for eval_id in eval_set.eval_ids
            )

    def to_json(self) -> Json:
        """JSON data without fields that have their own tables or that concern only this machine."""
        data = _WRITER.to_python(self, exclude=_ELSEWHERE)
        # As texts: pydantic has no place for names of files that are not Unicode.
        as_json: Json = json.loads(json.dumps(data, default=str))
        return as_json

    @classmethod
    def from_json(cls, data: Json, **elsewhere: Any) -> RunHeader:
        """The header in JSON data, with the fields in `elsewhere` that `to_json` leaves out. Raises
        ValueError for other data."""
        return _HEADER.validate_python({**data, **elsewhere})


_HEADER = TypeAdapter(RunHeader)
# `RunSettings` is imported without pydantic, so these of its types are not known where it stands.
_HEADER.rebuild(_types_namespace={"OwnPrice": OwnPrice, "PassIf": PassIf})
_WRITER = SchemaSerializer(with_all_fields(_HEADER.core_schema))
_ELSEWHERE: Any = {
    **dict.fromkeys(("started", "number", "evaltui", "stopped", "sets"), True),
    "settings": {"variants": True},
}
