"""The settings and the selection that a run was begun with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
from evaltui.core.model.tags import Tags
from evaltui.core.model.variants import Variant
from evaltui.project.folders import agent_file
from evaltui.project.interpreters import Interpreter
from evaltui.project.run_settings import RunSettings
from evaltui.runner.plan import rule_of_case
from evaltui.runs.run_kind import RunKind
from evaltui.runs.run_tables import with_all_fields
from evaltui.runs.shards import ShardsOfRun


@dataclass(frozen=True)
class SelectedSet:
    """An eval set of a run, and which of its cases were selected.

    `path` is that of `CaseId`, `config` what scored it, None where nobody knows; `whole` where all of its
    cases were selected. `places` are theirs in the set, from 0, None where nobody knows. `tags` are those of
    the selected cases, by their ids. `conversations` are those of traces that were scored, by the id of the
    case the ids of its repeats; None where the agent was run, or nobody knows.
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
    """How often cases are run that are run more often than the others, by their ids."""
    fingerprint: str | None = None
    """The fingerprint of the text of its file; None where it is unknown."""
    file: str | None = None
    """Its file as the run found it; None where nobody knows."""
    config_path: str | None = None
    """The file of its config; None for ADK's defaults, and where nobody knows."""
    defaulted: tuple[str, ...] | None = None
    """The criteria of its config that no file gave; None where nobody knows."""
    not_used: str | None = None
    """A config that stands above the set and is for other sets; None without one."""

    unselected: tuple[str, ...] = ()
    """Fingerprints of the JSON of its other cases, for a run that begins; `RunFile.unselected` reads them."""

    @cached_property
    def scored_by(self) -> Json | None:
        """Normal form of its config."""
        return None if self.config is None else normal_config(self.config)


@dataclass(frozen=True)
class RunHeader:
    """The agent, the settings and the selection that a run was begun with."""

    sets: tuple[SelectedSet, ...] = ()
    settings: RunSettings = field(default_factory=RunSettings)
    """The settings; in a shard, with the limits of all shards together."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    number: int | None = None
    """Number of the run, from 1; None outside of the runs of an agent."""
    evaltui: str = ""
    """Version of evaltui that wrote the file; "" before it is written. The same goes for `python`."""
    python: str = ""
    agent_dir: str = ""
    """Folder or file of the agent; "" where nobody knows."""
    agent_name: str | None = None
    """The agent below the root agent that was run as the root; None for the root itself."""
    module: str = ""
    """The dotted name that the agent was imported by; "" for what its folder holds."""
    url: str = ""
    """The address of an agent behind a network; "" for one that is imported."""
    in_process: bool = False
    """Whether the agent was an object, run in the process that evaluated it."""
    interpreter: Interpreter | None = None
    """The Python that the agent ran in, its `reason` "" for evaltui's own; None where nobody knows."""
    of_adk: bool = False
    """Whether google-adk ran the agent, in a mode that nobody knows."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The agent's files and those that were read elsewhere in its project, each with a fingerprint of what it
    held."""
    read: tuple[str, ...] = ()
    """The files of the project that its processes opened for reading."""
    written: tuple[str, ...] = ()
    """The files of the project that its processes opened for writing."""
    recordings: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the recordings before the run, by the paths of their sets."""
    config: str = ""
    """The config of all sets; "" where each has its own."""
    initial_session: str = ""
    """The session that sets of the old format begin with; "" for none."""
    variant: Variant | None = None
    """The variant that was run; None where none was asked for."""
    matrix: str = ""
    """The id that all runs of its matrix have; "" where it is of none."""
    variants: tuple[Variant, ...] = ()
    """All of its matrix, in their order; none where it does not say."""
    shards: ShardsOfRun | None = None
    """The shards of the selection that it holds; None where it was not divided."""
    traces: tuple[str, ...] = ()
    """The recorded traces that were scored, as the user named them; none where the agent was run."""
    trace_files: Mapping[str, str] = field(default_factory=dict)
    """Files of these traces, as seen from the agent's folder, with the SHA-256 of each."""
    case_from: str = ""
    """The attribute that names the case of a conversation; "" for those that are known."""
    only_paired: bool = False
    """Whether selected cases without a conversation were left out."""
    unpaired: int = 0
    """How many of the scored conversations no case is for."""
    session: str = ""
    """The id of the session that was received and scored; "" for none."""
    resumed: str = ""
    """Id of the run that it brought to its end; "" for none."""
    baseline: str = ""
    """Id of the run that it was compared with; "" for none."""
    merged: tuple[str, ...] = ()
    """Ids of the runs that it was made of."""
    last_part: datetime | None = None
    """When the last of the runs that it was made of was started; None for a run that was not merged."""
    preflight: tuple[MetricCheck, ...] = ()
    """Requirements of the metrics, as they were before the run."""
    stopped: str = ""
    """Why cases have no result although nobody interrupted the run, such as its budget, a sentence; "" where
    it was not stopped."""

    @property
    def of_traces(self) -> bool:
        """Whether recorded traces were scored instead of running the agent."""
        return bool(self.traces)

    @property
    def latest(self) -> datetime:
        """When the run was started that has its newest results."""
        return self.last_part or self.started

    @property
    def ended_early(self) -> str:
        """How a run ended that is not complete, in a word."""
        return "stopped" if self.stopped else "interrupted"

    @cached_property
    def kind(self) -> RunKind:
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
        """Whether the run is of this agent, whatever its verdicts are of, or of traces that nobody knows the
        agent of."""
        return self.of_traces or self.kind.agent == agent.agent

    def repeat_rule(self, eval_set: SelectedSet, eval_id: str, repeats: Repeats) -> RepeatRule:
        """How often a case is run whose config has `repeats`. Raises ValueError where it could never pass."""
        ids = None if eval_set.conversations is None else len(eval_set.conversations.get(eval_id, ()))
        return rule_of_case(self.settings, repeats, ids, eval_set.more.get(eval_id))

    def selected(self) -> Iterator[tuple[CaseId, str]]:
        """The selected cases, each with its set id."""
        for eval_set in self.sets:
            yield from (
                (CaseId(eval_set.path, eval_id), eval_set.eval_set_id) for eval_id in eval_set.eval_ids
            )

    def to_json(self) -> Json:
        """Without what has a place of its own in the file of the run, and what is of this machine alone."""
        data = _WRITER.to_python(self, exclude=_ELSEWHERE)
        # As texts: pydantic has no place for names of files that are not Unicode.
        as_json: Json = json.loads(json.dumps(data, default=str))
        return as_json

    @classmethod
    def from_json(cls, data: Json, **elsewhere: Any) -> RunHeader:
        """`elsewhere` are the fields that `to_json` leaves out. Raises ValueError for what is no header."""
        return _HEADER.validate_python({**data, **elsewhere})


_HEADER = TypeAdapter(RunHeader)
# `RunSettings` is imported without pydantic, so these of its types are not known where it stands.
_HEADER.rebuild(_types_namespace={"OwnPrice": OwnPrice, "PassIf": PassIf})
_WRITER = SchemaSerializer(with_all_fields(_HEADER.core_schema))
_ELSEWHERE: Any = {
    **dict.fromkeys(("started", "number", "evaltui", "python", "stopped", "sets"), True),
    "settings": {"variants": True},
}
