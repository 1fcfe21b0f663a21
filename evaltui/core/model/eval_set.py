"""The EvalSet schema of google-adk 2.13, read in snake_case or camelCase.

The models accept what ADK accepts. Where ADK differs between levels (unknown keys are refused in an
invocation, kept in a case, ignored in a set), so do they. Only the camelCase keys at the set level are an
addition: the documentation shows them, ADK itself does not read them.
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
    """The statement that is judged."""


class Rubric(_Strict):
    """A statement that a judge holds against what the agent did."""

    rubric_id: StrictStr
    """Unique among the rubrics of a case and its turns."""
    rubric_content: RubricContent
    description: str | None = None
    """Description for people."""
    type: str | None = None
    """Which metrics take it, such as `FINAL_RESPONSE_QUALITY`; None for those that take every rubric."""


class RubricScore(_Strict):
    """Score that a judge gives for a rubric."""

    rubric_id: StrictStr
    rationale: str | None = None
    """Why, in the judge's words."""
    score: float | None = None
    """1.0 for yes, 0.0 for no, None where the judge did not say."""


class AgentDetails(_Strict):
    """An agent as it ran."""

    name: StrictStr
    instructions: str = ""
    """The system instruction that its model was given."""
    tool_declarations: list[Any] = Field(default_factory=list)
    """genai Tools, or their JSON."""


class AppDetails(_Strict):
    """The agents of an app as they ran."""

    agent_details: dict[str, AgentDetails] = Field(default_factory=dict)
    """Details of agents by their names."""


class IntermediateData(_Strict):
    """Expected calls and responses as three flat lists: how cases are written by hand."""

    tool_uses: list[FunctionCall] = Field(default_factory=list)
    """The calls, in order."""
    tool_responses: list[FunctionResponse] = Field(default_factory=list)
    """Their results; which call one belongs to is told by its id."""
    intermediate_responses: list[tuple[StrictStr, list[Part]]] = Field(default_factory=list)
    """`(author, parts)` said before the final answer."""


class InvocationEvent(_Lenient):
    """One event of a recorded turn."""

    author: StrictStr
    """The agent, or `user`."""
    content: Content | None = None
    grounding_metadata: GroundingMetadata | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None


class InvocationEvents(_Strict):
    """Events of a turn, in order: the form in which runs are recorded."""

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
    """One turn: what the user said, and what the agent did or is expected to do. Durations in seconds."""

    invocation_id: StrictStr = ""
    """Id of the turn in the framework; it is not compared."""
    user_content: Content
    """Message of the user."""
    final_response: Content | None = None
    """The last answer; None expects none."""
    intermediate_data: Intermediate | None = None
    """The tool calls, and what was said in between. Expected, None says nothing of calls, and empty forbids
    them; of a turn that was run, None is unknown: its agent does not send its calls."""
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
        """Unknown parts of a turn that was run, such as `answers` (see `core.model.events`), each with its
        remedy. No file has them."""
        # Every metric asks it of every turn: as an attribute, pydantic would look for it for far longer.
        private = self.__pydantic_private__
        untold: Mapping[str, str] = private["_untold"] if private else {}
        return untold

    def without(self, untold: Mapping[str, str]) -> Invocation:
        """The turn, of which so much is unknown."""
        self._untold = dict(untold)
        return self

    @property
    def output(self) -> str | None:
        """The value that the agent returned beside its texts, as a text; None for none. No file has it."""
        return self._returned[0] if self._returned else None

    @property
    def with_output(self) -> Invocation:
        """The turn with its output as the response; itself where there is none."""
        return self._returned[1] if self._returned else self

    def returns(self, output: str, scored: Invocation) -> None:
        """Gives the turn an output; `scored` is the turn in which that is the response."""
        self._returned = output, scored
        scored._ran = {"final_response": self.final_response, "intermediate_data": self.intermediate_data}

    @property
    def as_it_ran(self) -> Invocation:
        """The turn with the agent's own response; itself unless its output is the response."""
        return self.model_copy(update=self._ran) if self._ran else self


DEFAULT_USER_ID = "test_user_id"
"""The user of a session that names none, as in google-adk."""


class SessionInput(_Open):
    """The session that a case begins with."""

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
    """A user that a model plays."""

    starting_prompt: StrictStr
    """The user's first message."""
    conversation_plan: StrictStr
    """Goal of the simulated user, and when it is reached."""
    user_persona: str | UserPersona | None = None
    """One of google-adk's by name, or a persona written out."""

    @field_validator("user_persona")
    @classmethod
    def _known_persona(cls, value: str | UserPersona | None) -> str | UserPersona | None:
        if isinstance(value, str) and value not in PREBUILT_PERSONAS:
            raise ValueError(
                f"unknown persona {value!r}; the built-in ones are {', '.join(PREBUILT_PERSONAS)}"
            )
        return value


class EvalCase(_Open):
    """A conversation with what is expected of the agent."""

    eval_id: StrictStr
    """Unique in its set."""
    conversation: list[Invocation] | None = None
    """The turns; None where the user is simulated."""
    conversation_scenario: ConversationScenario | None = None
    """Who the simulated user is; None where there are turns."""
    session_input: SessionInput | None = None
    """None for an empty session of a default user."""
    creation_timestamp: float = 0.0
    """Seconds since 1970."""
    rubrics: list[Rubric] | None = None
    """Rubrics of every turn."""
    final_session_state: dict[str, Any] | None = Field(default_factory=dict)
    """Keys that the session state must have after the last turn, with their values."""

    @property
    def checks_unspecified(self) -> bool:
        """Whether absent responses and calls of its turns are expectations, as in ADK."""
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
    """Cases in one file."""

    eval_set_id: StrictStr
    """A label: cases are told apart by their file."""
    name: str | None = None
    description: str | None = None
    eval_cases: list[EvalCase]
    creation_timestamp: float = 0.0
    """Seconds since 1970."""


def tool_calls(data: IntermediateData | InvocationEvents | None) -> list[FunctionCall]:
    """The tool calls of a turn in the order in which they were made; `[]` where nothing is given."""
    if data is None:
        return []
    if isinstance(data, IntermediateData):
        return list(data.tool_uses)
    return [part.function_call for part in _event_parts(data) if part.function_call]


def tool_responses(
    data: IntermediateData | InvocationEvents | None,
) -> list[FunctionResponse]:
    """The tool responses of a turn in order; `[]` where nothing is given."""
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
    """`(author, text)` of the texts before the final answer, thoughts left out."""
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


def answer_text(parts: Sequence[Part] | Sequence[types.Part] | None) -> str:
    """The text parts that are not thoughts, one per line."""
    return "\n".join(part.text for part in parts or [] if part.text and not part.thought)


def full_text(content: Content | None) -> str:
    """Every text part, thoughts included, one per line: what ADK 2.13 scores."""
    if content is None:
        return ""
    return "\n".join(part.text for part in content.parts or [] if part.text)


def user_text(content: Content | None) -> str:
    """The message of the user, and their responses to calls that wait, one per line."""
    parts = (content.parts if content else None) or []
    responses = [part.function_response for part in parts if part.function_response]
    described = [describe_response(response.model_dump(mode="json")) for response in responses]
    return "\n".join(filter(None, [full_text(content), *described]))


def scored_text(invocation: Invocation, *, thoughts: bool) -> str:
    """The text of a turn that is scored.

    With `thoughts`, all of the final response, as in ADK. Without, its text that is not a thought; where it
    holds thoughts only, the last thing said before it.
    """
    if thoughts:
        return full_text(invocation.final_response)
    answer = _answer(invocation)
    if answer or not _thoughts(invocation):
        return answer
    responses = intermediate_texts(invocation.intermediate_data)
    return responses[-1][1] if responses else ""


def unscored_texts(invocation: Invocation, *, thoughts: bool) -> tuple[AuthoredText, ...]:
    """The texts of the turn besides the scored text; the author of thoughts is THOUGHT."""
    thought = "" if thoughts else _thoughts(invocation)
    texts = texts_before(invocation, thoughts=thoughts)
    return tuple(AuthoredText(*text) for text in ((*texts, (THOUGHT, thought)) if thought else texts))


def texts_before(invocation: Invocation, *, thoughts: bool) -> tuple[tuple[str, str], ...]:
    """`(author, text)` of the intermediate responses, without one that is scored as the answer."""
    responses = intermediate_texts(invocation.intermediate_data)
    is_answer = not thoughts and _thoughts(invocation) and not _answer(invocation)
    return tuple(responses[:-1] if is_answer else responses)


def _answer(invocation: Invocation) -> str:
    return answer_text(invocation.final_response.parts if invocation.final_response else None)


def _thoughts(invocation: Invocation) -> str:
    parts = (invocation.final_response.parts if invocation.final_response else None) or []
    return "\n".join(part.text for part in parts if part.text and part.thought)
