"""Agents whose session state is an object with defaults, by framework."""

from __future__ import annotations

_CLASS = """
from dataclasses import dataclass, field

from pydantic import SecretStr


@dataclass
class Desk:
    currency: str = field(default_factory=lambda: "EUR")
    key: SecretStr = field(default_factory=lambda: SecretStr("wk-live-0123456789abcdef"))
    log: list[str] = field(default_factory=list)
    tier: str = "none"
    asked: int = 0

    def __post_init__(self):
        self.log.append("opened")

    def told(self):
        self.asked += 1
        return f"{self.currency} {self.tier} {self.log} {self.key.get_secret_value()[:2]}"
"""
SOURCES = {
    "pydantic": _CLASS
    + """
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

told = []
model = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart(told[-1])]))
root_agent = Agent(model, name="desk", deps_type=Desk)


@root_agent.instructions
def instructions(ctx: RunContext[Desk]) -> str:
    told.append(ctx.deps.told())
    return ""
""",
    "openai": _CLASS
    + """
from agents import Agent, Model, ModelResponse, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText


class Rules(Model):
    async def get_response(self, system_instructions, *args, **kwargs):
        text = ResponseOutputText(type="output_text", text=system_instructions, annotations=[])
        message = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
        return ModelResponse([ResponseOutputMessage(content=[text], **message)], Usage(), None)

    async def stream_response(self, *args, **kwargs):
        raise NotImplementedError
        yield


root_agent = Agent[Desk](name="desk", model=Rules(), instructions=lambda ctx, agent: ctx.context.told())
""",
}
