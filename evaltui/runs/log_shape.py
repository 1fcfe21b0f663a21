"""The lines of a run log as types, of which their schema is made. `log` writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from evaltui.core.model.events import Event
from evaltui.core.model.outcome import Status
from evaltui.core.schemas.generating import Schema, schema_of


class SetOfRun(BaseModel):
    path: str
    """Relative to the folder of the agent."""
    eval_set_id: str
    eval_ids: list[str]
    """The selected cases."""
    config: dict[str, Any] | None = None
    whole: bool = False
    """Whether all cases of the set were selected."""
    places: list[int] | None = None
    """Where the selected cases are in the set, from 0; absent where all were selected."""
    tags: dict[str, list[str]] = {}
    """Of the selected cases, by id; absent where none has a tag."""
    conversations: dict[str, list[str]] | None = None
    """Of scored traces: by the id of a case those of its conversations, a repeat each."""
    fingerprint: str | None = None
    """SHA-256 of the text of its file; absent where that was edited and not saved."""


class Shards(BaseModel):
    """The parts of a selection that the log holds."""

    numbers: list[int]
    """Counted from 1."""
    count: int
    divided_by: str
    """`hash`, or the fingerprint of the durations that were known."""
    sets: dict[str, dict[str, Any]]
    """By path: `eval_set_id`, `eval_ids` of all shards, `fingerprint`, `whole`."""


class VariantOfRun(BaseModel):
    """The variant of the agent that was run."""

    name: str
    changes: dict[str, Any] = {}
    """By `model`, `model.AGENT`, `instruction`, `config.FIELD`, `env.NAME`, `git` or `agent`."""
    commit: str = ""
    """The one that `git` stands for."""
    places: dict[str, str] = {}
    """Of `instruction` and `agent` the file or folder, as seen from the agent's folder."""


class Header(BaseModel):
    """The first line."""

    kind: Literal["header"]
    version: int
    """Of the log."""
    evaltui: str
    python: str
    started: str
    """ISO 8601."""
    number: int | None = None
    """Of the run, from 1; absent in a merged log outside of the runs of an agent."""
    event_version: int
    agent_dir: str
    agent_name: str = ""
    """A sub-agent that was run instead of the root agent."""
    module: str = ""
    url: str = ""
    sets: list[SetOfRun]
    files: dict[str, str]
    """Files of the agent with fingerprints of their text; that of the `.env` takes long to compute."""
    recordings: dict[str, str] = {}
    """The recordings that could be replayed, by the paths of their sets, with fingerprints before the run."""
    settings: dict[str, Any] = {}
    """Run-wide settings as they were in effect."""
    runs: int = 1
    """How often each case is run, where `--runs` says so."""
    pass_if: str | float = "all"
    confidence: float | None = None
    """Of `--confidence`: how sure the verdict on each case must be. Absent where the runs are fixed."""
    max_runs: int | None = None
    """Of `--max-runs`."""
    adk_verdicts: bool = False
    config_choice: str = ""
    """With `--adk-verdicts`: `beside` for the `test_config.json` beside each set, `defaults` for none."""
    record: str = ""
    tools: str = ""
    budget: str = ""
    """What model calls may spend: `5 USD`, `2,000,000 tokens`."""
    limits: dict[str, dict[str, float]] = {}
    """What models were asked at most, by name: `rpm`, `tpm`, `concurrent`; those of a shard are its part."""
    config: str = ""
    """Of `--config`."""
    initial_session: str = ""
    """Of `--initial-session`."""
    session: str = ""
    """The id of the session that a listener received, and that was scored."""
    in_process: bool = False
    """Whether the agent ran in the process that began the run."""
    traces: list[str] = []
    """Files and folders of recorded traces that were scored instead of running the agent."""
    trace_files: dict[str, str] = {}
    """Each of these files, relative to the folder of the agent, with its SHA-256; "" for a pipe."""
    case_from: str = ""
    """Of `--case-from`."""
    only_paired: bool = False
    resumed: str = ""
    """Id of the run that this one resumes."""
    baseline: str = ""
    """Id of the run that it, or a run that it resumes or is merged of, was compared with when it was over."""
    shards: Shards | None = None
    """Absent where the cases were not divided."""
    matrix: str = ""
    """The id that all runs of a matrix have."""
    variants: list[VariantOfRun] = []
    """All of the matrix, in their order."""
    variant: VariantOfRun | None = None
    """Absent where the agent was run as it is, and no variant was named."""
    merged: list[str] = []
    """Ids of the runs that were merged."""


class Agent(BaseModel):
    """The agent as its host has imported it."""

    kind: Literal["agent"]
    name: str
    framework: str
    version: str
    """Of the framework."""
    model: str
    tools: list[dict[str, Any]]
    """Each with name, description and the JSON schema of its arguments."""
    sub_agents: list[str]
    plugins: list[str]
    notes: list[str]
    unrecorded: str
    """Why its calls cannot be recorded; "" where they can."""
    not_passed_on: list[str] = []
    """Names of a case's `session_input` that this kind of agent does not take."""
    python: str = ""
    """The version of its Python."""
    changes: list[dict[str, str]] = []
    """What its variant has changed: `what`, `old` and `new`."""


class CaseStarted(BaseModel):
    """A repeat of a case begins, or begins anew: what came of it before does not count."""

    kind: Literal["case_started"]
    path: str
    set: str
    case: str
    repeat: int
    """Counted from 0."""


class RepeatResult(BaseModel):
    """The result of one repeat of a case."""

    kind: Literal["repeat_result"]
    path: str
    set: str
    case: str
    repeat: int
    """Counted from 0."""
    result: dict[str, Any]
    """Status, metrics, the turns as they ran, error, seconds."""


class Spent(BaseModel):
    """What model calls of a run with a budget have spent that no result counts: those of cases that were cut
    off or run again, and calls that did not tell their tokens. Several lines add up."""

    kind: Literal["spent"]
    usd: float = 0.0
    """Of the calls with a known price."""
    tokens: float = 0.0


class Cost(BaseModel):
    usd: float | None = None
    """Of the calls with a known price; absent where no price is known."""
    saved_usd: float | None = None
    """What replayed calls would have cost."""
    unpriced: int = 0
    """Calls that cost an unknown amount."""
    unseen: int = 0
    """Repeats in which the agent may have asked models that nobody saw."""


class Decision(BaseModel):
    answer: Literal["passes", "does not pass", "undecided"]
    confidence: float
    max_runs: int
    low: float
    """Up to this pass rate the case does not pass."""
    high: float
    """From this pass rate it passes; in between, either answer is right."""


class CaseResult(BaseModel):
    """The result of a case; the index has it once more."""

    kind: Literal["case_result", "index"]
    path: str = ""
    eval_id: str
    eval_set_id: str
    status: Status
    runs: int = 1
    passed: int = 0
    """Repeats that passed, where there were several."""
    pass_if: str = "all"
    policy_met: bool = False
    scores: dict[str, float] = {}
    """By metric, the mean over repeats."""
    seconds: float | None = None
    tokens: float | None = None
    throttled: float = 0.0
    """Seconds in which model calls waited for the limits of the run, of all runs of the case."""
    expects: str = ""
    """Fingerprint of the case."""
    given: str = ""
    """Fingerprint of what the agent got of the case."""
    judges: dict[str, str] = {}
    statuses: list[Status] = []
    """Of its repeats, where they differ."""
    times: list[float] = []
    """Seconds of its repeats, where there were several."""
    decision: Decision | None = None
    """What a sequential test says of its repeats; absent where their number was fixed."""
    costs: dict[str, Cost] = {}
    """Of all its repeats together, by payer: agent, judge, simulated user. Absent where nobody knows."""
    events: list[int] = []
    """Where the events of the case begin and end in the log, in bytes."""
    repeats_at: list[int] = []
    """Where the results of its repeats are, in bytes."""


class Checkpoint(BaseModel):
    """Comes behind a part of the index, which has the results since the part before."""

    kind: Literal["checkpoint"]
    index: list[int]
    """Where the part begins and ends, in bytes."""
    before: int | None = None
    """Where the checkpoint of the part before is, in bytes; absent in the first one."""


class Totals(BaseModel):
    """What the cases of a run came to."""

    counts: dict[Status, int]
    flaky_passed: int = 0
    """How many of the flaky ones pass by their policy."""
    tokens: float | None = None
    """Of all cases; absent where nobody knows."""
    cost: Cost | None = None
    """Of all cases; absent where nobody knows."""
    case_seconds: float | None = None
    """What a run of a case took, the median of its cases; absent where nobody knows."""


class Footer(BaseModel):
    """The last line of a log that was closed; it is the last checkpoint, too."""

    kind: Literal["footer"]
    status: Status | None = None
    """Absent where the run was interrupted."""
    totals: Totals | None = None
    """Absent where a case has several results, of which only one stands."""
    seconds: float | None = None
    index: list[int]
    """Where the last part of the index begins and ends, in bytes."""
    before: int | None = None
    """Where the checkpoint of the part before is, in bytes; absent where there is one part."""


Line = Annotated[
    Header | Agent | CaseStarted | Event | RepeatResult | CaseResult | Spent | Checkpoint | Footer,
    Field(discriminator="kind"),
]


def log_schema() -> Schema:
    """The schema of a line of a run log."""
    return schema_of(Line, "Line of an evaltui run log", written=True)
