"""A set that was run, as reports and result files tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaltui.core.model.eval_set import EvalCase, Invocation


@dataclass(frozen=True)
class SetInfo:
    """A set that was run, and the config it was scored by.

    `effective` is the config as JSON, `{"criteria": ...}` at least; `defaulted` are the criteria in it that
    no file gave. `cases` are those that were run, by id, with what they expect, `case_path` is their file as
    in `CaseId`. `passed_over` is a config that stands above the set and was not used for it.
    """

    eval_set_id: str
    path: Path
    config_path: Path | None
    effective: dict[str, Any]
    defaulted: tuple[str, ...] = ()
    cases: Mapping[str, EvalCase] = field(default_factory=dict)
    case_path: str = ""
    passed_over: Path | None = None

    @property
    def known_as(self) -> str:
        return self.case_path or self.eval_set_id

    def expected(self, eval_id: str) -> list[Invocation]:
        """What each turn of a case expects; nothing where a user is simulated."""
        case = self.cases.get(eval_id)
        return (case.conversation or []) if case else []
