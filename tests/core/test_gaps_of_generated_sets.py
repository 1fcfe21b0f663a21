"""No change that the metrics call equal by definition is a gap, in generated sets with results."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from eval_data import make_turn, new_rule
from recorded_cases import recorded, report_of

from evaltui.core.model.eval_set import tool_calls
from evaltui.core.model.tool_schema import DeclaredTool

VALUES = {
    "city": ["Oslo", "oslo", "Rome"],
    "id": [1, 2, 17, "17", -3],
    "late": [True, False],
    "limit": [10, 25],
    "filter": [{"after": "2026-01-02", "by": "me"}, {"after": "2026-01-03"}],
    "tags": [["a", 1], []],
}
TYPES = {"city": "string", "late": "boolean", "limit": "integer", "filter": "object", "tags": "array"}
DEFAULTS = {"limit": 10, "late": False}
TOOLS = {"find": ["city", "id", "limit"], "pay": ["id", "late"], "note": ["filter", "tags"], "ping": []}
MATCHES = ["ignore", "type", "case_insensitive", {"any_of": [1, 2, 17, -3]}]
METRICS = {
    "EXACT": ("tool_trajectory_avg_score", {}),
    "IN_ORDER": ("tool_trajectory_avg_score", {"match_type": "IN_ORDER"}),
    "ANY_ORDER": ("tool_trajectory_avg_score", {"match_type": "ANY_ORDER"}),
    "precision": ("trajectory_precision", {}),
    "recall": ("trajectory_recall", {}),
}
TEXTS = [
    "The bedroom is set to 19 °C, and the light is off.",
    "Your order 7 from Ada Byron is late: it costs 12.50 euros!",
    "DONE... it was paid for you at 08:05 on 2026-09-01 - - -",
    "I will not book the flight to Oslo for you.",
    "— ok —",
    "Flug nach Oslo ist gebucht, und das Hotel auch.",
    "寝室の照明を消しました。",
    "$7",
]


class Generated:
    """An eval set with a case and its result, and the definition of equal calls and responses there."""

    def __init__(self, seed):
        self.random = random = Random(seed)
        self.metrics = random.sample(list(METRICS), random.choice([1, 1, 1, 2]))
        if len({METRICS[name][0] for name in self.metrics}) < len(self.metrics):
            self.metrics = self.metrics[:1]
        self.ignore_args = random.random() < 0.15
        args = {(tool, arg): random.choice(MATCHES) for tool in TOOLS for arg in TOOLS[tool]}
        self.rules = dict(random.sample(list(args.items()), random.choice([0, 1, 3])))
        self.expected = [[self.call() for _ in range(random.choice([0, 1, 2, 3]))] for _ in range(3)]
        self.expected = self.expected[: random.choice([1, 2, 3])]
        self.actual = list(map(self.performed, self.expected))
        texts = [random.choice(TEXTS) for _ in self.expected]
        state = {"seen": random.choice(["x", {"a": 1, "b": 2}]), "more": 1}
        self.state = random.choice([{}, {"seen": state["seen"]}, state])
        criteria = {
            METRICS[name][0]: {
                "threshold": random.choice([1.0, 0.6, 0.3]),
                "ignore_args": self.ignore_args,
                **METRICS[name][1],
            }
            for name in self.metrics
        }
        criteria["response_match_score"] = random.choice([0.8, 0.3])
        rules = [new_rule(tool, arg, match) for (tool, arg), match in self.rules.items()]
        sides = ((texts, self.expected), (list(map(self.spelt, texts)), self.actual))
        self.recorded = recorded(
            *(
                [make_turn("hi", text, calls_of(calls)) for text, calls in zip(said, turns, strict=True)]
                for said, turns in sides
            ),
            criteria,
            {"rules": rules},
            final_state={**state, "other": 0},
            tools=[DeclaredTool(name, "", schema(name)) for name in TOOLS],
            final_session_state=self.state,
        )

    def call(self):
        tool = self.random.choice(list(TOOLS))
        args = {arg: self.random.choice(VALUES[arg]) for arg in TOOLS[tool] if self.random.random() < 0.7}
        return tool, args

    def performed(self, calls):
        """Calls as an agent makes them: different as far as the config allows."""
        made = [
            (tool, {arg: self.varied(tool, arg, value) for arg, value in args.items()})
            for tool, args in calls
        ]
        if {*self.metrics} <= {"ANY_ORDER", "precision", "recall"}:
            self.random.shuffle(made)
        if not {"EXACT", "precision"} & {*self.metrics} and self.random.random() < 0.5:
            made.insert(self.random.randint(0, len(made)), self.random.choice([*made, self.call()]))
        return made

    def varied(self, tool, arg, value):
        others = [other for other in VALUES[arg] if self.key(tool, arg, other) == self.key(tool, arg, value)]
        return self.random.choice(others)

    def spelt(self, text):
        """A text as the text score sees it: other letters, white space and punctuation."""
        return self.random.choice([text, text.upper(), text.replace(" ", "  "), text.replace(",", " -")])

    # Definitions

    def key(self, tool, arg, value):
        """The value as far as it counts."""
        match = self.rules.get((tool, arg))
        if match == "type":
            is_text = isinstance(value, str) and not re.fullmatch(r"-?\d+(\.\d+)?", value)
            return str if is_text else type(value) if isinstance(value, bool | dict | list) else "number"
        if match == "case_insensitive" and isinstance(value, str):
            return repr(value.casefold())
        if isinstance(match, dict) and value in match["any_of"]:
            return "any"
        return repr(value)

    def keys(self, calls, *, with_defaults=False):
        """The calls as far as they count."""
        return [
            (tool,)
            if self.ignore_args
            else (
                tool,
                *sorted(
                    (arg, str(self.key(tool, arg, value)))
                    for arg, value in args.items()
                    if self.rules.get((tool, arg)) != "ignore"
                    and not (with_defaults and arg in DEFAULTS and value == DEFAULTS[arg])
                ),
            )
            for tool, args in calls
        ]

    def are_equal_calls(self, before, after, turn):
        if self.keys(before, with_defaults=True) == self.keys(after, with_defaults=True):
            return True
        if {"ANY_ORDER", "precision", "recall"} >= {*self.metrics} and same_items(
            self.keys(before), self.keys(after)
        ):
            return True
        expected, made = self.keys(self.expected[turn]), self.keys(after)
        return all(self.is_full(metric, expected, made) for metric in self.metrics) or (
            # A further call that is made twice.
            not {"EXACT", "precision"} & {*self.metrics}
            and len(after) > len(before)
            and not Counter(map(repr, before)) - Counter(map(repr, after))
        )

    def is_full(self, metric, expected, made):
        match metric:
            case "EXACT":
                return expected == made
            case "IN_ORDER":
                rest = iter(made)
                return all(key in rest for key in expected)
            case "precision":
                return not Counter(made) - Counter(expected) and bool(made or not expected)
        return not Counter(expected) - Counter(made)

    def is_equal(self, mutant):
        """Whether a change is none by the definition of the metrics that see it."""
        if mutant.subject == "state":
            expected = self.state
            return all(covers(value, (mutant.final_state or {}).get(key)) for key, value in expected.items())
        before, after = (turns[mutant.turn] for turns in (self.recorded.turns, mutant.turns))
        if mutant.subject == "calls":
            return self.are_equal_calls(named(before), named(after), mutant.turn)
        return words(mutant.before) == words(mutant.after)


def words(text):
    """The words of the text score, besides a currency, which means something."""
    return sorted(re.findall(r"[^\W_]+|[$€]", text.lower()))


def same_items(left, right):
    return Counter(left) == Counter(right)


def covers(expected, actual):
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(covers(value, actual.get(key)) for key, value in expected.items())
    return expected == actual


def named(turn):
    return [(call.name, call.args or {}) for call in tool_calls(turn.intermediate_data)]


def calls_of(calls):
    return [{"name": tool, "args": args} for tool, args in calls]


def schema(tool):
    properties = {arg: {"type": TYPES.get(arg, "string")} for arg in TOOLS[tool]}
    for arg in properties.keys() & DEFAULTS.keys():
        properties[arg]["default"] = DEFAULTS[arg]
    return {"type": "object", "properties": properties}


def test_no_change_that_is_equal_by_definition_is_a_gap(thorough):
    gaps, noticed, equal = Counter(), Counter(), []
    for seed in range(1000 if thorough else 40):
        generated = Generated(seed)
        case = generated.recorded
        mutants = {(mutant.turn, case.digest(mutant)): mutant for mutant in case.mutants(1000)}
        for kind in report_of(case).kinds:
            noticed[kind.kind] += kind.noticed
            for gap in kind.gaps:
                gaps[kind.kind] += 1
                mutant = mutants[None if gap.turn is None else gap.turn - 1, gap.digest]
                if generated.is_equal(mutant):
                    equal.append((seed, kind.kind, gap.before, gap.after))
    assert not equal
    # Otherwise nothing was shown: each kind is missed somewhere, and noticed elsewhere.
    kinds = {"call dropped", "another tool", "argument changed", "answer cut", "another number"}
    assert kinds <= gaps.keys()
    assert kinds <= noticed.keys()
