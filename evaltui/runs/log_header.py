"""The first line of a run log: what was run, and the eval sets and cases of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import member, members_of
from evaltui.core.model.modes import RecordMode, ToolMode
from evaltui.core.model.tags import Tags
from evaltui.core.model.variants import Variant
from evaltui.files.folders import OWN_FOLDER
from evaltui.runs.shards import ShardsOfRun
from evaltui.text.values import in_words

if TYPE_CHECKING:
    from evaltui.core.compare.repeat_rules import RepeatRule
    from evaltui.core.model.config import Repeats


@dataclass(frozen=True)
class LoggedSet:
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
    """Of the text of its file; None where nobody knows."""

    @cached_property
    def scored_by(self) -> Json | None:
        """Normal form of its config."""
        from evaltui.core.metrics.normal_config import normal_config

        return None if self.config is None else normal_config(self.config)

    def to_json(self) -> Json:
        data: Json = {"path": self.path, "eval_set_id": self.eval_set_id, "eval_ids": list(self.eval_ids)}
        if self.tags:
            data["tags"] = {eval_id: list(tags) for eval_id, tags in self.tags.items()}
        if self.conversations is not None:
            data["conversations"] = {eval_id: list(ids) for eval_id, ids in self.conversations.items()}
        if self.config is not None:
            data["config"] = self.config
        if self.more:
            data["more"] = dict(self.more)
        if self.places is not None and not self.whole:
            data["places"] = list(self.places)
        if self.fingerprint is not None:
            data["fingerprint"] = self.fingerprint
        return data | ({"whole": True} if self.whole else {})


@dataclass(frozen=True)
class RunHeader:
    """`files` are the agent's with fingerprints of what they hold, `data` is all that the line says.

    Where it is `by_label`, the log is of an earlier version, which told cases by set id only. `twins` are the
    ids of set and case of those of which it cannot tell the file. `shards` are those of the selection that it
    holds, None where it was not divided. `variant` is the one that was run, None where none was asked for.
    """

    started: datetime
    sets: tuple[LoggedSet, ...]
    files: Mapping[str, str]
    data: Json
    by_label: bool = False
    twins: frozenset[tuple[str, str]] = frozenset()
    shards: ShardsOfRun | None = None
    variant: Variant | None = None

    def without_cases(self) -> RunHeader:
        """The header without what it says of single cases: of many they take megabytes."""
        sets = tuple(
            LoggedSet(one.path, one.eval_set_id, (), one.config, one.whole, fingerprint=one.fingerprint)
            for one in self.sets
        )
        data = {name: value for name, value in self.data.items() if name not in ("sets", "selected")}
        return replace(self, sets=sets, data=data)

    @property
    def matrix(self) -> str:
        """The id that all runs of its matrix have; "" where it is of none."""
        return str(self.data.get("matrix") or "")

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """All of its matrix, in their order; none where it does not say. Raises ValueError for what are no
        variants."""
        return tuple(map(Variant.from_json, member(self.data, "variants", list, [])))

    @property
    def number(self) -> int | None:
        """Number of the run, from 1; None in a log of an earlier version."""
        return self.data.get("number")

    @property
    def of_traces(self) -> bool:
        """Whether recorded traces were scored instead of running the agent."""
        return bool(self.data.get("traces"))

    @property
    def in_process(self) -> bool:
        """Whether the agent was an object, run in the process that evaluated it."""
        return self.data.get("in_process") is True

    @property
    def trace_files(self) -> Mapping[str, str]:
        """Files of traces that were scored, as seen from the agent's folder, with the SHA-256 of each."""
        return members_of(self.data, "trace_files", str)

    @property
    def recordings(self) -> Mapping[str, str]:
        """Fingerprints of the recordings before the run, by the paths of their sets."""
        return members_of(self.data, "recordings", str)

    @property
    def confidence(self) -> Confidence | None:
        """How sure its verdicts had to be; None where the number of runs was fixed."""
        return Confidence.from_json(self.data) if "confidence" in self.data else None

    def repeat_rule(self, one: LoggedSet, eval_id: str, repeats: Repeats) -> RepeatRule:
        """How often a case is run whose config has `repeats`. Raises ValueError where it could never pass."""
        from evaltui.core.compare.repeat_rules import FixedRuns, repeat_rule

        if one.conversations is not None:
            return FixedRuns(max(len(one.conversations.get(eval_id, ())), 1))
        if eval_id in one.more:
            return FixedRuns(one.more[eval_id])
        runs, pass_if = self.data.get("runs") or repeats.runs, self.data.get("pass_if") or repeats.pass_if
        return repeat_rule(runs, pass_if, self.confidence)

    def selected(self) -> Iterator[tuple[CaseId, str]]:
        """The selected cases, each with its set id."""
        for one in self.sets:
            yield from ((CaseId(one.path, eval_id), one.eval_set_id) for eval_id in one.eval_ids)

    def id_of(self, path: Any, eval_set_id: Any, eval_id: Any) -> CaseId:
        """The case that a line is about, by what the line says. Raises ValueError for what is no text."""
        for value in (path or "", eval_set_id, eval_id):
            if not isinstance(value, str):
                raise ValueError(f"an id of a case is {in_words(value)}")
        if path:
            return CaseId(path, eval_id)
        found = next((one.path for one in self.sets if one.eval_set_id == eval_set_id), eval_set_id)
        is_twin = (eval_set_id, eval_id) in self.twins
        return CaseId(eval_set_id if is_twin else found, eval_id)


def header_from_json(log: Path, data: Json) -> RunHeader:
    """Raises ValueError where something is missing or of another kind than it is."""
    sets = data.get("sets", [])
    by_label = "selected" in data or not isinstance(sets, list)
    files = members_of(data, "files", str)
    if "traces" in data:
        _texts(data, "traces")
    members_of(data, "trace_files", str)
    members_of(data, "recordings", str)
    for name, kind in _KINDS.items():
        if name in data:
            member(data, name, kind)
    if "runs" in data and data["runs"] < 1:
        raise ValueError(f"runs is {in_words(data['runs'])}")
    if "confidence" in data:
        Confidence.from_json(data)
    _check_choices(data)
    twins: frozenset[tuple[str, str]] = frozenset()
    if by_label:
        found = tuple(_sets_by_label(log, data))
        twins = frozenset(
            (one.eval_set_id, eval_id)
            for one in found
            for eval_id, count in Counter(one.eval_ids).items()
            if count > 1
        )
    else:
        found = tuple(_logged_set(one) for one in sets)
    started = datetime.fromisoformat(member(data, "started", str))
    shards = ShardsOfRun.from_json(member(data, "shards", dict)) if "shards" in data else None
    variant = Variant.from_json(member(data, "variant", dict)) if "variant" in data else None
    return RunHeader(started, found, files, data, by_label, twins, shards, variant)


# What the run was begun with, as far as it was asked for.
_KINDS = {"number": int, "runs": int} | dict.fromkeys(
    ("agent_name", "module", "url", "config", "initial_session", "matrix", "case_from"), str
)


def _check_choices(data: Json) -> None:
    for name, choices in (("record", get_args(RecordMode)), ("tools", get_args(ToolMode))):
        if data.get(name) not in (None, *choices):
            raise ValueError(f"{name} is {in_words(data[name])}")
    match data.get("pass_if"):
        case None | "all" | "majority":
            pass
        case int() | float() as rate if 0 < rate <= 1:
            pass
        case other:
            raise ValueError(f"pass_if is {in_words(other)}")


def _logged_set(data: Any) -> LoggedSet:
    if not isinstance(data, dict):
        raise ValueError(f"an eval set is {in_words(data)}")
    config = member(data, "config", dict) if "config" in data else None
    path, eval_set_id = member(data, "path", str), member(data, "eval_set_id", str)
    eval_ids, whole = _texts(data, "eval_ids"), bool(data.get("whole"))
    places = tuple(range(len(eval_ids))) if whole else _places(data, len(eval_ids))
    tags = {eval_id: _texts(data["tags"], eval_id) for eval_id in member(data, "tags", dict, {})}
    held = member(data, "conversations", dict) if "conversations" in data else None
    conversations = None if held is None else {eval_id: _texts(held, eval_id) for eval_id in held}
    return LoggedSet(
        path,
        eval_set_id,
        eval_ids,
        config,
        whole,
        places,
        tags,
        conversations,
        _more(data),
        member(data, "fingerprint", (str, type(None)), None),
    )


def _more(data: Json) -> dict[str, int]:
    found = members_of(data, "more", int)
    if not all(runs > 0 for runs in found.values()):
        raise ValueError(f"more is {in_words(found)}")
    return found


def _places(data: Json, count: int) -> tuple[int, ...] | None:
    if "places" not in data:
        return None
    places = member(data, "places", list)
    if len(places) != count or not all(type(one) is int and one >= 0 for one in places):
        raise ValueError(f"places is {in_words(places)}, eval_ids has {count}")
    return tuple(places)


def _sets_by_label(log: Path, data: Json) -> Iterator[LoggedSet]:
    """Earlier versions kept the sets, and the selected cases, by set id."""
    selected, sets = member(data, "selected", dict, {}), members_of(data, "sets", dict)
    for eval_set_id in dict.fromkeys([*selected, *sets]):
        one = sets.get(eval_set_id, {})
        config = member(one, "config", dict) if "config" in one else None
        path = _as_seen(log, member(one, "path", str)) if "path" in one else eval_set_id
        eval_ids = _texts(selected, eval_set_id) if eval_set_id in selected else ()
        yield LoggedSet(path, eval_set_id, eval_ids, config, bool(one.get("whole")))


def _as_seen(log: Path, path: str) -> str:
    """Earlier versions wrote the whole path of a set that is not below the agent's folder."""
    own, runs = log.resolve().parent.parent, log.resolve().parent.name
    if not Path(path).is_absolute() or (own.name, runs) != (OWN_FOLDER, "runs"):
        return path
    return Path(os.path.relpath(path, own.parent)).as_posix()


def _texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = data.get(name)
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise ValueError(f"{name} is not a list of strings")
    return tuple(values)
