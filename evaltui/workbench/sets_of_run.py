"""The eval sets of an earlier run, as they are now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.events import Json
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.stored_cases import StoredCase
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.files.settings import secrets_of
from evaltui.files.workspace import Workspace
from evaltui.runs.run_header import SelectedSet
from evaltui.workbench.open_sets import OpenSets


@dataclass(frozen=True)
class SetOfRun:
    """An eval set, and what scores it now."""

    file: EvalSetFile
    config: EvalConfig | None
    """None where it has errors."""
    is_same: bool
    """Whether the file is what it was in the run. It need not be validated then."""
    scored_then: Json | None = None
    """The config that scored it in the run; None where nobody knows, or it says the same now."""
    forms: tuple[Json, Json] | None = None
    """Normal form of the config in the run and of that now; None where they are equal, or nobody knows."""

    @cached_property
    def config_then(self) -> EvalConfig | None:
        """The config that scored it in the run; None where that cannot be read."""
        try:
            return EvalConfig.model_validate(self.scored_then)
        except ValueError:
            return None

    def case(self, eval_id: str) -> StoredCase | None:
        """A case that can be scored, whatever else is wrong with the set; None where there is none."""
        number = self.file.number(eval_id)
        if number is None:
            return None
        stored = self.file.cases[number]
        if not self.is_same and self.file.eval_set is None:
            try:
                stored.model()
            except ValueError:
                return None
        return stored


class SetsOfRun:
    """Each is looked at once: that takes time. For a thread."""

    def __init__(self, sets: OpenSets, workspace: Workspace, began_with: Iterable[SelectedSet] = ()) -> None:
        """`began_with` is what a log says of them; nothing where the run has none."""
        self._sets = sets
        self._workspace = workspace
        self._began_with = {one.path: one for one in began_with}
        self._known: dict[tuple[str, str], SetOfRun] = {}

    def get(self, path: str, path_then: str) -> SetOfRun:
        """The set with this path, which the workspace has; `path_then` is what the run calls it."""
        key = path, path_then
        if key not in self._known:
            then = self._began_with.get(path_then)
            self._known[key] = self._look(self._workspace.by_case_path[path], then)
        return self._known[key]

    def _look(self, listed: EvalSetFile, then: SelectedSet | None) -> SetOfRun:
        is_same = then is not None and then.fingerprint is not None and then.fingerprint == listed.fingerprint
        file = listed if is_same else self._sets.open(listed.path)
        found = self._sets.config_now(listed.path) if is_same else file.config
        if found is None or isinstance(found, EvalSetError):
            return SetOfRun(file, None, is_same, then.config if then else None)
        # As the log has it.
        now = secrets_of(self._sets.agent_dir).masked(found.config.scoring())
        if then is None or then.scored_by is None or then.config == now:
            return SetOfRun(file, found.config, is_same)
        forms = then.scored_by, normal_config(now)
        if forms[0] == forms[1]:
            return SetOfRun(file, found.config, is_same)
        return SetOfRun(file, found.config, is_same, then.config, forms)
