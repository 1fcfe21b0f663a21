"""The EvalSet schema of google-adk 2.13, read in snake_case or camelCase.

The models accept the same data as ADK: unknown keys are refused in an invocation, kept in a case, ignored in
a set. In addition, camelCase keys are accepted at the set level: ADK documents them, but does not read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    StrictStr,
    Tag,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from .base_model import DataModel
from .content import Content, FunctionCall, FunctionResponse, GroundingMetadata, Part, UsageMetadata
from .datasets import ORIGINAL, OWN_KEY, checks_unspecified
from .events import describe_response
from .modes import PREBUILT_PERSONAS
from .text_diff import THOUGHT, AuthoredText

if TYPE_CHECKING:
    from google.genai import types

_BOTH_SPELLINGS = ConfigDict(
    alias_generator=to_camel,
    populate_by_name=True,
    arbitrary_types_allowed=True,
    # genai writes and reads bytes as base64; a nested model follows the settings of the outermost one.
    ser_json_bytes="base64",
    val_json_bytes="base64",
)


class _Strict(DataModel):
    model_config = ConfigDict(**_BOTH_SPELLINGS, extra="forbid")


class _Open(DataModel):
    model_config = ConfigDict(**_BOTH_SPELLINGS, extra="allow")


class _Lenient(DataModel):
    model_config = ConfigDict(**_BOTH_SPELLINGS, extra="ignore")


class RubricContent(_Strict):
    text_property: str | None = None
    """The statement to judge."""


class Rubric(_Strict):
    """A statement that a judge checks against the agent's behavior."""

    rubric_id: StrictStr
    """Unique among the rubrics of a case and its turns."""
    rubric_content: RubricContent
    description: str | None = None
    """Description for people."""
    type: str | None = None
    """The type of metrics that judge it, such as `FINAL_RESPONSE_QUALITY`; None for metrics that judge every
    rubric."""


class RubricScore(_Strict):
    """Score that a judge gives for a rubric."""

    rubric_id: StrictStr
    rationale: str | None = None
    """Why, in the judge's words."""
    score: float | None = None
    """1.0 for yes, 0.0 for no, None where the judge did not say."""


class AgentDetails(_Strict):
    """An agent of a run."""

    name: StrictStr
    instructions: str = ""
    """The system instruction for its model."""
    tool_declarations: list[Any] = Field(default_factory=list)
    """genai Tools, or their JSON."""


class AppDetails(_Strict):
    """The agents of an app in a run."""

    agent_details: dict[str, AgentDetails] = Field(default_factory=dict)
    """Details of agents by their names."""


class IntermediateData(_Strict):
    """Expected calls and responses as three flat lists, the form for cases written by hand."""

    tool_uses: list[FunctionCall] = Field(default_factory=list)
    """The calls, in order."""
    tool_responses: list[FunctionResponse] = Field(default_factory=list)
    """Responses of tools; the id of a response tells its call."""
    intermediate_responses: list[tuple[StrictStr, list[Part]]] = Field(default_factory=list)
    """`(author, parts)` of texts before the final answer."""


class InvocationEvent(_Lenient):
    """One event of a recorded turn."""

    author: StrictStr
    """The agent, or `user`."""
    content: Content | None = None
    grounding_metadata: GroundingMetadata | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None


class InvocationEvents(_Strict):
    """The events of a turn in order, the form of recorded runs."""

    invocation_events: list[InvocationEvent] = Field(default_factory=list)


def _intermediate_shape(value: Any) -> str:
    if isinstance(value, InvocationEvents):
        return "events"
    if isinstance(value, dict) and ("invocation_events" in value or "invocationEvents" in value):
        return "events"
    return "lists"


Intermediate = Annotated[
    Annotated[IntermediateData, Tag("lists")] | Annotated[InvocationEvents, Tag("events")],
    Discriminator(_intermediate_shape),
]


class Invocation(_Strict):
    """A turn: the user's message, and the actual or expected behavior of the agent. Durations are in
    seconds."""

    invocation_id: StrictStr = ""
    """Id of the turn in the framework; it is not compared."""
    user_content: Content
    """Message of the user."""
    final_response: Content | None = None
    """The last answer; None for no expected answer."""
    intermediate_data: Intermediate | None = None
    """Tool calls and texts before the answer.

    As an expectation, None leaves calls unspecified, and an empty value forbids them; in an actual turn, None
    means that they are unknown.
    """
    creation_timestamp: float = 0.0
    """Seconds since 1970."""
    duration: float | None = None
    """Seconds of the whole turn."""
    model_duration: float | None = None
    """Seconds of its model calls."""
    tool_duration: float | None = None
    """Seconds of its tool calls."""
    rubrics: list[Rubric] | None = None
    """Rubrics of this turn, besides those of the case."""
    app_details: AppDetails | None = None
    """Instructions and tools of each agent, as it ran."""
    _untold: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _returned: tuple[str, Invocation] | None = PrivateAttr(default=None)
    _ran: dict[str, Any] | None = PrivateAttr(default=None)

    @property
    def untold(self) -> Mapping[str, str]:
        """Unknown parts of an actual turn, such as `answers` (see `core.model.events`), each with its remedy.
        Not stored in files."""
        # Every metric asks it of every turn: as an attribute, pydantic would look for it for far longer.
        private = self.__pydantic_private__
        untold: Mapping[str, str] = private["_untold"] if private else {}
        return untold

    def without(self, untold: Mapping[str, str]) -> Invocation:
        """The turn with some unknown parts."""
        self._untold = dict(untold)
        return self

    @property
    def output(self) -> str | None:
        """The output that the agent returned beside its texts, as text; None for none. Not stored in
        files."""
        return self._returned[0] if self._returned else None

    @property
    def with_output(self) -> Invocation:
        """The turn with its output as the response; the turn itself without an output."""
        return self._returned[1] if self._returned else self

    def returns(self, output: str, scored: Invocation) -> None:
        """Sets the output of the turn; `scored` is the turn with the output as its response."""
        self._returned = output, scored
        scored._ran = {"final_response": self.final_response, "intermediate_data": self.intermediate_data}

    @property
    def as_it_ran(self) -> Invocation:
        """The turn with the agent's own response; the turn itself unless its response is the output."""
        return self.model_copy(update=self._ran) if self._ran else self


DEFAULT_USER_ID = "test_user_id"
"""The user id of a session without one, as in google-adk."""


class SessionInput(_Open):
    """The session at the start of a case."""

    app_name: StrictStr
    user_id: StrictStr
    session_id: StrictStr | None = None
    """None for a new session in each run."""
    state: dict[str, Any] = Field(default_factory=dict)
    """The session state before the first turn."""


class UserBehavior(DataModel):
    name: str
    description: str
    behavior_instructions: list[str]
    violation_rubrics: list[str]


class UserPersona(DataModel):
    id: str
    description: str
    behaviors: list[UserBehavior]


class ConversationScenario(_Strict):
    """A scenario for a simulated user."""

    starting_prompt: StrictStr
    """The user's first message."""
    conversation_plan: StrictStr
    """Goal of the simulated user, and when it is reached."""
    user_persona: str | UserPersona | None = None
    """The name of a persona of google-adk, or a persona."""

    @field_validator("user_persona")
    @classmethod
    def _known_persona(cls, value: str | UserPersona | None) -> str | UserPersona | None:
        if isinstance(value, str) and value not in PREBUILT_PERSONAS:
            raise ValueError(
                f"unknown persona {value!r}; the built-in ones are {', '.join(PREBUILT_PERSONAS)}"
            )
        return value


class EvalCase(_Open):
    """A conversation with expectations of the agent."""

    eval_id: StrictStr
    """Unique in its set."""
    conversation: list[Invocation] | None = None
    """The turns; None where the user is simulated."""
    conversation_scenario: ConversationScenario | None = None
    """The scenario of a simulated user; None for a case with turns."""
    session_input: SessionInput | None = None
    """None for an empty session of a default user."""
    creation_timestamp: float = 0.0
    """Seconds since 1970."""
    rubrics: list[Rubric] | None = None
    """Rubrics of every turn."""
    final_session_state: dict[str, Any] | None = Field(default_factory=dict)
    """Expected keys of the session state after the last turn, with their values."""

    @property
    def checks_unspecified(self) -> bool:
        """Whether absent responses and calls of its turns are checked, as in ADK."""
        return checks_unspecified(self.model_extra or {})

    @property
    def of_dataset(self) -> dict[str, Any] | None:
        """The case as its dataset has it, without what a run has written; None for any other case."""
        own = (self.model_extra or {}).get(OWN_KEY)
        return own.get(ORIGINAL) if isinstance(own, dict) else None

    @model_validator(mode="after")
    def _exactly_one_conversation(self) -> EvalCase:
        if (self.conversation is None) == (self.conversation_scenario is None):
            raise ValueError(
                "needs exactly one of conversation and conversation_scenario"
                + (", has neither" if self.conversation is None else ", has both")
            )
        return self


class EvalSet(_Lenient):
    """The cases of a file."""

    eval_set_id: StrictStr
    """The id, which is only a label: several files may have the same."""
    name: str | None = None
    description: str | None = None
    eval_cases: list[EvalCase]
    creation_timestamp: float = 0.0
    """Seconds since 1970."""


def tool_calls(data: IntermediateData | InvocationEvents | None) -> list[FunctionCall]:
    """The tool calls of a turn in order; [] for None."""
    if data is None:
        return []
    if isinstance(data, IntermediateData):
        return list(data.tool_uses)
    return [part.function_call for part in _event_parts(data) if part.function_call]


def tool_responses(
    data: IntermediateData | InvocationEvents | None,
) -> list[FunctionResponse]:
    """The tool responses of a turn in order; [] for None."""
    if data is None:
        return []
    if isinstance(data, IntermediateData):
        return list(data.tool_responses)
    return [part.function_response for part in _event_parts(data) if part.function_response]


def _event_parts(data: InvocationEvents) -> Iterator[Part]:
    for event in data.invocation_events:
        yield from (event.content.parts or []) if event.content else []


def intermediate_texts(
    data: IntermediateData | InvocationEvents | None,
) -> list[tuple[str, str]]:
    """`(author, text)` of the texts before the final answer, without thoughts."""
    if data is None:
        return []
    responses: Sequence[tuple[str, Sequence[Part]]]
    if isinstance(data, IntermediateData):
        responses = data.intermediate_responses
    else:
        responses = [
            (event.author, event.content.parts or []) for event in data.invocation_events if event.content
        ]
    texts = [(author, answer_text(parts)) for author, parts in responses]
    return [(author, text) for author, text in texts if text]


def responding_agent(invocation: Invocation, *, thoughts: bool = False) -> str | None:
    """The agent that gives the scored response of a turn; "" for no response, None where no event tells it.

    With `thoughts`, a response of thoughts is one, as in `scored_text`.
    """
    response, data = invocation.final_response, invocation.intermediate_data
    if response is None or not any(map(_has_content, response.parts or ())):
        return ""
    if not thoughts and all(part.thought for part in response.parts or ()):
        texts = intermediate_texts(data)
        return texts[-1][0] if texts else ""
    if not isinstance(data, InvocationEvents):
        return None
    # The content of the response is in `final_response`, unless it calls.
    events = [event for event in data.invocation_events if event.content in (None, response)]
    return events[-1].author if events else None


def _has_content(part: Part) -> bool:
    """Whether a part is more than an empty text."""
    members = part.model_dump(exclude_none=True, exclude={"thought", "thought_signature", "text"})
    return bool(members) or bool((part.text or "").strip())


def answer_text(parts: Sequence[Part] | Sequence[types.Part] | None) -> str:
    """The texts of the parts without thoughts, one per line."""
    return "\n".join(part.text for part in parts or [] if part.text and not part.thought)


def full_text(content: Content | None) -> str:
    """The texts of all parts with thoughts, one per line: the scored text of ADK 2.13."""
    if content is None:
        return ""
    return "\n".join(part.text for part in content.parts or [] if part.text)


def user_text(content: Content | None) -> str:
    """The message of the user, and the user's responses to waiting calls, one per line."""
    parts = (content.parts if content else None) or []
    responses = [part.function_response for part in parts if part.function_response]
    described = [describe_response(response.model_dump(mode="json")) for response in responses]
    return "\n".join(filter(None, [full_text(content), *described]))


def scored_text(invocation: Invocation, *, thoughts: bool) -> str:
    """The scored text of a turn.

    With `thoughts`, all of the final response, as in ADK. Otherwise its texts that are no thoughts; for a
    response with thoughts only, the last text before it.
    """
    if thoughts:
        return full_text(invocation.final_response)
    answer = _answer(invocation)
    if answer or not _thoughts(invocation):
        return answer
    responses = intermediate_texts(invocation.intermediate_data)
    return responses[-1][1] if responses else ""


def unscored_texts(invocation: Invocation, *, thoughts: bool) -> tuple[AuthoredText, ...]:
    """The texts of a turn besides the scored one; thoughts have the author THOUGHT."""
    thought = "" if thoughts else _thoughts(invocation)
    texts = texts_before(invocation, thoughts=thoughts)
    return tuple(AuthoredText(*text) for text in ((*texts, (THOUGHT, thought)) if thought else texts))


def text_and_output(invocation: Invocation, *, thoughts: bool = False) -> str:
    """The scored text of a turn, and its output below where that says something else."""
    texts = scored_text(invocation, thoughts=thoughts), invocation.output
    return "\n".join(dict.fromkeys(text for text in texts if text))


def texts_before(invocation: Invocation, *, thoughts: bool) -> tuple[tuple[str, str], ...]:
    """`(author, text)` of the intermediate responses, without a text that is scored as the answer."""
    responses = intermediate_texts(invocation.intermediate_data)
    is_answer = not thoughts and _thoughts(invocation) and not _answer(invocation)
    return tuple(responses[:-1] if is_answer else responses)


def _answer(invocation: Invocation) -> str:
    return answer_text(invocation.final_response.parts if invocation.final_response else None)


def _thoughts(invocation: Invocation) -> str:
    parts = (invocation.final_response.parts if invocation.final_response else None) or []
    return "\n".join(part.text for part in parts if part.text and part.thought)
