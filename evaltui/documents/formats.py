"""The formats of case files: eval sets and configs as JSON, Google's datasets and configs, and other text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from evaltui.core.model.datasets import OWN_KEY
from evaltui.core.model.eval_config import METRICS_TO_RUN, from_eval_config, managed_metric
from evaltui.core.model.file_kinds import is_eval_config
from evaltui.core.model.json_values import without_places
from evaltui.core.model.problems import JsonPath, errors_in
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CaseFile, Chunk
from evaltui.documents.dataset import DatasetDocument
from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import Edit, EditError, at_path, missing, same
from evaltui.documents.nodes import BOM
from evaltui.documents.values import edits_between
from evaltui.documents.yaml_text import YamlText

_CRITERIA = "criteria"
_LOOKS_SO = re.compile(r"""^["']?(?:metrics_to_run|custom_metrics)["']?[ \t]*:""", re.MULTILINE)


class _Undivided:
    """A case file without cases, whose text is all head."""

    head: str
    key: str | None = None
    chunks: tuple[Chunk, ...] = ()
    tail = ""
    cases: tuple[StoredCase, ...] = ()
    lines_of_cases: Sequence[int] = ()

    @property
    def text(self) -> str:
        return self.head

    @property
    def frame(self) -> str:
        return self.head

    def has_text_of(self, other: CaseFile) -> bool:
        return self.text == other.text


class EvalConfigDocument(_Undivided):
    """The text of a config of agents-cli, YAML or JSON. Its data, paths and edits are those of the config of
    an eval set."""

    def __init__(self, source: YamlText | JsonDocument) -> None:
        """Raises ValueError for data with an error."""
        self.source = source
        self.head = source.text
        converted, problems = from_eval_config(source.value, {})
        if converted is None:
            raise ValueError(str(errors_in(problems)[0]))
        self.value: Any = converted
        """The data of the config, without the code of functions in files of their own."""

    @classmethod
    def of_json(cls, source: JsonDocument) -> EvalConfigDocument | None:
        """The config in a JSON text; None for other data, and for a config with errors."""
        if source.key is not None or not is_eval_config(source.value):
            return None
        try:
            return cls(source)
        except ValueError:
            return None

    @classmethod
    def of_yaml(cls, text: str) -> EvalConfigDocument | None:
        """The config in a YAML text; None for any other text."""
        if text.startswith(BOM) or not _LOOKS_SO.search(text):
            return None
        source = YamlText(text)
        return cls(source) if is_eval_config(source.value) else None

    def read(self, text: str) -> CaseFile:
        if isinstance(self.source, YamlText):
            return EvalConfigDocument(YamlText(text))
        return EvalConfigDocument(JsonDocument(text))

    def with_chunks(self, chunks: Iterable[Chunk]) -> CaseFile:
        return self

    def edited(self, edits: Iterable[Edit]) -> CaseFile:
        edits = list(edits)
        changed = JsonDocument(json.dumps(self.value)).edited(edits).value
        if same(changed, self.value):
            return self
        path = edits[0].path
        try:
            edited = EvalConfigDocument(self._with(_native(self.source.value, self.value, changed)))
        except EditError:
            raise
        except ValueError as error:
            raise EditError(str(error), path) from None
        if not same(_canonical(edited.value), _canonical(changed)):
            raise EditError("a config of agents-cli cannot hold this: edit the text of the file", path)
        return edited

    def _with(self, native: Any) -> YamlText | JsonDocument:
        if isinstance(self.source, YamlText):
            return self.source.with_value(native)
        return self.source.edited(edits_between(self.source.value, native, ()))

    def line_of(self, path: JsonPath) -> int:
        return self.source.line_of(path)

    def text_at(self, path: JsonPath) -> str:
        return json.dumps(at_path(self.value, path), indent=2, ensure_ascii=False)


def _canonical(value: Any) -> Any:
    """The data of a config with all criteria in its block."""
    block = value.get(OWN_KEY) or {}
    criteria = {**(value.get(_CRITERIA) or {}), **(block.get(_CRITERIA) or {})}
    named = {**block, METRICS_TO_RUN: sorted(block.get(METRICS_TO_RUN) or ()), _CRITERIA: criteria}
    rest = without_places(value, {(_CRITERIA,)})
    return {**rest, OWN_KEY: {name: item for name, item in named.items() if item not in ({}, [])}}


def _native(native: Any, before: Any, changed: Any) -> Any:
    """The data of the file that says what the config of an eval set says. Raises EditError."""
    for key in changed:
        if key not in (_CRITERIA, OWN_KEY):
            raise EditError(f"a config of agents-cli has no {key}; a test_config.json beside the dataset has")
    block = dict(changed.get(OWN_KEY) or {})
    metrics = block.pop(METRICS_TO_RUN, None) or {}
    criteria = {**(changed.get(_CRITERIA) or {}), **(block.pop(_CRITERIA, None) or {})}
    own = dict(native.get(OWN_KEY) or {})
    names = list(native.get(METRICS_TO_RUN) or ())
    of_block = before[OWN_KEY]
    new_names = [name for name in names if _name_here(name, of_block) in metrics]
    new_names += [name for name in metrics if name not in of_block[METRICS_TO_RUN]]
    # Thresholds that a managed metric has by itself are not written.
    own_criteria = own.get(_CRITERIA) or {}
    own_criteria = {
        name: criterion
        for name, criterion in criteria.items()
        if name in own_criteria or not same(criterion, of_block[_CRITERIA].get(name))
    }
    if own_criteria or _CRITERIA in own:
        block[_CRITERIA] = own_criteria or (own[_CRITERIA] and {})
    ordered = {name: block[name] for name in own if name in block} | block
    result = {name: value for name, value in native.items() if name != OWN_KEY or ordered}
    if new_names != names:
        result[METRICS_TO_RUN] = new_names
    if ordered:
        result[OWN_KEY] = ordered
    return result


def _name_here(name: str, block: Any) -> str:
    """The name that a metric of agents-cli has in evaltui."""
    if name in block[METRICS_TO_RUN]:
        return name
    managed = managed_metric(name)
    return managed.metric if managed and managed.metric else name


def read_case_file(text: str, like: CaseFile | None = None) -> CaseFile:
    """A text in the format that it has; chunks of `like` are shared. Raises ValueError for text in none."""
    try:
        source = JsonDocument(text, like.source if isinstance(like, DatasetDocument) else like)
    except ValueError:
        if (config := EvalConfigDocument.of_yaml(text)) is None:
            raise
        return config
    return DatasetDocument.of(source, like) or EvalConfigDocument.of_json(source) or source


class WholeText(_Undivided):
    """A case file that cannot be read: no value and no cases, only a text that another one may replace."""

    value: Any = None

    def __init__(self, text: str) -> None:
        self.head = text

    def read(self, text: str) -> CaseFile:
        """A text in any format. Raises ValueError where it is in none."""
        return read_case_file(text)

    def edited(self, edits: Iterable[Edit]) -> CaseFile:
        for edit in edits:
            raise EditError("the text is not valid JSON", edit.path)
        return self

    def with_chunks(self, chunks: Iterable[Chunk]) -> CaseFile:
        return self

    def line_of(self, path: JsonPath) -> int:
        return 1

    def text_at(self, path: JsonPath) -> str:
        raise missing(path)


class TextLines(WholeText):
    """A text of lines, such as a recording, in which every text is valid."""

    def read(self, text: str) -> CaseFile:
        return TextLines(text)


def read_any_text(text: str, like: CaseFile | None = None) -> CaseFile:
    """Reads a case file; a text in no format becomes one chunk."""
    try:
        return read_case_file(text, like)
    except ValueError:
        return WholeText(text)
