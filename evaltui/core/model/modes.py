"""Modes that users choose: recording of models and tools, marks of turns; and the built-in personas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# auto: replay what is known, ask for what is not, and keep it. replay: never ask. record: ask, and keep it in
# place of what was known. off: ask, and keep nothing.
RecordMode = Literal["auto", "replay", "record", "off"]
# live: call, and keep nothing. record: call, and keep the result. stub: never call.
ToolMode = Literal["live", "record", "stub"]

# context: run, not scored. skip: run and scored, but for its calls.
TurnMode = Literal["context", "skip"]

# Nothing is written beside the sets, and nothing old is shown as new, unless somebody asks for it.
DEFAULT_MODE: RecordMode = "off"


_TOOLS: dict[RecordMode, ToolMode] = {"auto": "record", "replay": "stub", "record": "record", "off": "live"}


@dataclass(frozen=True)
class Modes:
    """The modes of models and tools in a run; `tools` is for tools that `by_tool` does not have."""

    models: RecordMode = DEFAULT_MODE
    tools: ToolMode = "live"
    by_tool: Mapping[str, ToolMode] = field(default_factory=dict)

    @property
    def is_off(self) -> bool:
        return self.models == "off" and {self.tools, *self.by_tool.values()} == {"live"}

    @property
    def keeps_models(self) -> bool:
        return self.models in ("auto", "record")

    @property
    def replays(self) -> bool:
        """Whether models answer from the recording."""
        return self.models in ("auto", "replay")

    @property
    def uses(self) -> bool:
        """Whether any recorded answer is used."""
        return self.replays or self.stubs

    @property
    def writes(self) -> bool:
        return self.keeps_models or "record" in (self.tools, *self.by_tool.values())

    @property
    def stubs(self) -> bool:
        """Whether any call is answered only from a recording."""
        return self.models == "replay" or "stub" in (self.tools, *self.by_tool.values())

    def of_tool(self, name: str) -> ToolMode:
        return self.by_tool.get(name, self.tools)


def modes_of(models: RecordMode, tools: ToolMode | None, by_tool: Mapping[str, ToolMode]) -> Modes:
    """The modes of a run; `by_tool` are those in the config of a set.

    Without `tools`, tools follow the models: recorded while recording, stubbed in a replay, which records
    nothing. In a replay, only a tool that the config sets to live is called.
    """
    rest = tools or _TOOLS[models]
    if models == "replay":
        by_tool = {name: "stub" if mode == "record" else mode for name, mode in by_tool.items()}
        rest = "stub" if rest == "record" else rest
    return Modes(models, rest, by_tool)


PREBUILT_PERSONAS = ("EXPERT", "NOVICE", "EVALUATOR")
