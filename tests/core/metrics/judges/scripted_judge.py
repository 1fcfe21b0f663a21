"""A judge that answers by a script, and turns for it to judge."""

from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError
from evaltui.core.metrics.metric import MetricInput
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.eval_set import ConversationScenario, Invocation
from evaltui.core.model.outcome import ErrorInfo

MISSED = JudgeFailedError(
    ErrorInfo("NotRecordedError", "not in recordings/s.jsonl", kind=None), was_asked=False
)
OUT_OF_QUOTA = JudgeFailedError(ErrorInfo("ClientError", "429 quota exceeded", "Traceback ...", kind=None))


class ScriptedJudge:
    """Gives its answers in order, or what a function makes of each question; exceptions are raised."""

    def __init__(self, *answers):
        self._answer = answers[0] if answers and callable(answers[0]) else None
        self._answers = iter(answers)
        self.questions = []

    async def __call__(self, question):
        self.questions.append(question)
        said = self._answer(question) if self._answer else next(self._answers)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Answer) else Answer(said)

    @property
    def prompts(self):
        return [question.prompt for question in self.questions]


async def nobody(question):
    raise AssertionError(f"nobody is to be asked: {question}")


def said(text, *, thought=False):
    return {"text": text, **({"thought": True} if thought else {})}


def called(name, **args):
    return {"function_call": {"id": "c-1", "name": name, "args": args}}


def returned(name, **response):
    return {"function_response": {"id": "c-1", "name": name, "response": response}}


def event(*parts, author="agent", **fields):
    return {"author": author, "content": {"parts": list(parts)}, **fields}


def turn(user, *events, answer=None, **fields):
    """A turn as a run records it."""
    made = {
        "user_content": {"role": "user", "parts": [said(user)]},
        "intermediate_data": {"invocation_events": list(events)},
        **fields,
    }
    if answer is not None:
        parts = answer if isinstance(answer, list) else [said(answer)]
        made["final_response"] = {"role": "model", "parts": parts}
    return made


def agent_details(instructions="Be kind.", tools=("look_up",), name="agent"):
    declared = [{"function_declarations": [{"name": tool} for tool in tools]}] if tools else []
    details = {"name": name, "instructions": instructions, "tool_declarations": declared}
    return {"agent_details": {name: details}}


def judged(name, *actual, expected=None, threshold=0.5, criterion=None, scenario=None, **marks):
    """Inputs of a judged metric; a `criterion` is its keys besides the threshold."""
    return MetricInput(
        expected=None if expected is None else [Invocation.model_validate(one) for one in expected],
        actual=[Invocation.model_validate(one) for one in actual],
        metric=EvalMetric.model_validate(
            {"metric_name": name, "criterion": {"threshold": threshold, **(criterion or {})}}
        ),
        scenario=None if scenario is None else ConversationScenario.model_validate(scenario),
        **marks,
    )


def samples(number, **options):
    return {"judge_model_options": {"num_samples": number, **options}}
