"""Metrics as judges leave them, for the tests of what shows them."""

from evaltui.core.model.judgement import Evidence, JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status, worst_status

RUBRICS = "rubric_based_final_response_quality_v1"
ANSWERS = "final_response_match_v2"
SENTENCES = "hallucinations_v1"
RATINGS = "response_evaluation_score"
WHOLE = "multi_turn_task_success_v1"


def votes(yes, no, lost=0, *, why="It is so.", against="It is not.", labels=("yes", "no")):
    """So many votes for, against and without a verdict, in this order."""
    return (
        *(Vote(1.0, why, labels[0]) for _ in range(yes)),
        *(Vote(0.0, against, labels[1]) for _ in range(no)),
        *(Vote(None, problem="TimeoutError: no response within 60 s") for _ in range(lost)),
    )


def judged(id, subject, yes, no, lost=0, **words):
    """A judgement by the majority of the votes; ties are negative."""
    found = votes(yes, no, lost, **words)
    if not yes and not no:
        return Judgement(id, subject, None, votes=found)
    score = float(yes > no)
    deciding = next(vote for vote in found if vote.score == score)
    return Judgement(id, subject, score, deciding.rationale, votes=found)


def sentence(text, label, why="", **evidence):
    good = label in ("supported", "not_applicable")
    return Judgement(
        "",
        text,
        float(good),
        why,
        tuple(Evidence(*item) for item in evidence.items()),
        (Vote(float(good), why, label),),
    )


def judged_metric(name, *turns, threshold=0.8, status=None, reason="", lost=0):
    """A metric over turns, each of them its judgements; one without any was not judged."""
    scored = tuple(_turn(judgements, threshold) for judgements in turns)
    known = [one.score for one in scored if one.score is not None]
    asked = sum(len(judgements) for judgements in turns) or 1
    return MetricResult(
        name,
        sum(known) / len(known) if known else None,
        threshold,
        status or worst_status(one.status for one in scored if one.judgements),
        per_invocation=scored,
        reason=reason,
        judge=JudgedBy("gemini-2.5-flash", f"{name.rpartition('_v')[0]}/1", asked, asked - lost),
    )


def _turn(judgements, threshold):
    known = [one.score for one in judgements if one.score is not None]
    if not known:
        return InvocationScore(None, Status.NOT_EVALUATED, judgements=tuple(judgements))
    score = sum(known) / len(known)
    status = Status.PASSED if score >= threshold else Status.FAILED
    return InvocationScore(score, status, judgements=tuple(judgements))


POLITE = judged("polite", "Says please and thank you", 1, 4, against="It shouts\x1b[2J at the user.")
SHORT = judged("short", "Is at most two sentences", 5, 0)
LEFT_OUT = judged("on_topic", "Stays with the thermostat", 0, 0, 1)
SPLIT = judged("kind", "Is kind", 3, 2, why="It greets.", against="It does not greet.")
AGREES = judged("", "21 °C", 5, 0, labels=("valid", "invalid"))
DISAGREES = judged(
    "",
    "19 °C",
    1,
    3,
    1,
    why="Both are cold.",
    against="19 is not 21.",
    labels=("valid", "invalid"),
)
SUPPORTED = sentence(
    "The kitchen is heated.", "supported", "set_mode says so.", supporting='{"mode": "heat"}'
)
INVENTED = sentence(
    "It is 30 °C there.", "contradictory", "The thermostat says 19.", contradicting='{"degrees": 19}'
)
