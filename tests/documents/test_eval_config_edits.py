"""Configs of agents-cli are edited in place: one hunk, other bytes stay, agents-cli reads what it read."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.edits import EditError, same
from evaltui.documents.formats import EvalConfigDocument, read_case_file
from evaltui.documents.values import copy_of, edits_of

NAMES = {
    "metrics_to_run:\n  - mine  # the judge\n  - 'safety'\n",
    "metrics_to_run: [mine, safety]   # both\n",
    'metrics_to_run:\n- "safety"\n- mine\n',
    "metrics_to_run:\n  # first\n  - safety\n\n  # second\n  - mine\n",
    '"metrics_to_run": [mine, safety]\n',
    "metrics_to_run: [\n  mine,  # here\n  safety\n]\n",
}
CUSTOM = {
    "custom_metrics:\n  - name: mine\n    custom_function: |\n      def evaluate(instance):\n"
    "          return {'score': 1}   # one\n\n",
    "custom_metrics:\n- {name: mine, prompt_template: 'Rate {response}'}\n",
    "'custom_metrics': [{name: mine, prompt_template: 'Rate {response}'}]\n",
    'custom_metrics:\n  -\n    name: mine\n    prompt_template: "a\\n\\\n      b"\n',
    "custom_metrics:\n  - name: mine\n    prompt_template: >-\n      Rate\n      {response}\n  # end\n",
}
CRITERIA = {
    "",
    "  criteria:\n    mine: 4    # of 5\n    safety_v1: 1.0\n",
    '  criteria: {"mine": 4, safety_v1: {threshold: 1.0}}\n',
    "  criteria:\n    safety_v1:\n      threshold: 1\n      # no more\n    # between\n    mine: 1_000.5\n",
    "  criteria:  # none yet\n",
    "  criteria: {}\n",
    "  criteria: &shared\n    mine: 4\n",
}
RULES = {
    "",
    "  rules:\n    - {tool: find, arg: what, match: ignore}  # dates\n    - tool: find\n      # inner\n"
    "      arg: 'when'\n      match: {regex: \"a+\"}\n",
    "  rules: [{tool: find, arg: what, match: ignore}, {tool: find, arg: when, match: ignore}]\n",
    "  rules:\n  - tool: find\n    arg: what\n    match: ignore\n\n  - tool: find\n    arg: when\n"
    "    match: ignore\n",
}
REPEATS = {"", "  repeats: {runs: 3}\n", "  repeats:\n    runs: 3 # thrice\n    pass_if: 'all'\n"}
VALUES = ["no", "it's: #1", None, 2.5]
RULE = {"tool": "yes", "arg": "at", "match": {"any_of": VALUES}, "set": "s", "case": "c"}
CHANGES = {
    "threshold": lambda config: config.set_threshold("safety_v1", 0.25),
    "threshold of a function": lambda config: config.set_threshold("mine", 3),
    "option": lambda config: config.set_option("safety_v1", ("judge_model_options", "num_samples"), 3),
    "runs": lambda config: config.set_repeats(runs=5),
    "pass if": lambda config: config.set_repeats(pass_if="majority"),
    "thoughts": lambda config: config.set_scored("thoughts", "score"),
    "new rule": lambda config: config.put_rule(RULE),
    "new metric": lambda config: config.add_metric("response_match_score", 0.8),
    "own metric": lambda config: config.add_metric("cost_usd", 0.01),
    "remove rule": lambda config: config.remove_rule(0),
    "remove last rule": lambda config: config.remove_rule(1),
    "remove runs": lambda config: config.remove_setting("runs"),
    "remove metric": lambda config: config.remove_metric("safety_v1"),
}


@st.composite
def configs(draw):
    """The text of a config of agents-cli, as people write them."""
    parts = [draw(st.sampled_from(sorted(NAMES))), draw(st.sampled_from(sorted(CUSTOM)))]
    block = "".join(draw(st.sampled_from(sorted(part))) for part in (CRITERIA, RULES, REPEATS))
    if block:
        parts.append("evaltui:  # ours\n" + block)
    elif draw(st.booleans()):
        blocks = ["evaltui:\n", "evaltui: {}  # c\n", '"evaltui": {repeats: {runs: 3}}\n']
        parts.append(draw(st.sampled_from(blocks)))
    parts.append(draw(st.sampled_from(["", "other: &x [1, 2]  # theirs\nmore: *x\n", "# end\n\n"])))
    parts = draw(st.permutations(parts))
    text = draw(st.sampled_from(["", "# top\n\n", "---\n"])) + "".join(parts)
    text = text.rstrip("\n") if draw(st.booleans()) else text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def hunks(before: str, after: str) -> list[tuple[int, int, int, int]]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [code[1:] for code in codes if code[0] != "equal"]


@given(configs(), st.sampled_from(sorted(CHANGES)))
def test_an_edit_is_one_hunk_and_agents_cli_reads_the_rest_as_before(text, name):
    document = read_case_file(text)
    assert isinstance(document, EvalConfigDocument)
    config = ConfigEditor(copy_of(document.value))
    try:
        CHANGES[name](config)
    except EditError:
        return
    edited = document.edited(edits_of(config.config))
    wanted = ConfigEditor(config.config)
    now = ConfigEditor(copy_of(edited.value))
    assert {metric: now.criterion(metric) for metric in now.metrics} == {
        metric: wanted.criterion(metric) for metric in wanted.metrics
    }
    block, wanted_block = edited.value["evaltui"], config.config["evaltui"]
    for member in ("rules", "repeats", "thoughts"):
        assert same(block.get(member) or None, wanted_block.get(member) or None)
    # A metric stands in the list of metrics, and among the criteria.
    assert len(hunks(text, edited.text)) <= (2 if name == "remove metric" else 1)
    before, after = yaml.safe_load(text), yaml.safe_load(edited.text)
    if name == "remove metric":
        before["metrics_to_run"].remove("safety")
    assert {**after, "evaltui": None} == {**before, "evaltui": None}
    comments = [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]
    if not name.startswith("remove"):
        assert all(comment in edited.text for comment in comments)


REFUSED = {
    "an anchor that another place reads": (
        "metrics_to_run: [safety]\nevaltui:\n  criteria: &c\n    safety_v1: 1.0\nother: *c\n",
        "threshold",
    ),
    "merged keys": (
        "metrics_to_run: [safety]\nx: &x {safety_v1: 0.5}\nevaltui:\n  criteria:\n    <<: *x\n",
        "threshold",
    ),
    "the only key of an element": (
        "metrics_to_run: [safety]\nevaltui:\n  tags:\n    - set: s\n",
        lambda config: config.config["evaltui"].update(tags=[{"case": "c"}]),
    ),
    "a user simulator": (
        "metrics_to_run: [safety]\n",
        lambda config: config.config.update(user_simulator_config={"model": "m"}),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_text_has_no_place_for_is_refused(name):
    text, change = REFUSED[name]
    document = read_case_file(text)
    config = ConfigEditor(copy_of(document.value))
    (CHANGES[change] if isinstance(change, str) else change)(config)
    with pytest.raises(EditError, match=r"its YAML leaves no place|has no user_simulator_config"):
        document.edited(edits_of(config.config))


def test_a_config_as_json_is_edited_as_json():
    text = '{\n  "metrics_to_run": ["safety"],\n  "x": 1\n}\n'
    document = read_case_file(text)
    config = ConfigEditor(copy_of(document.value))
    config.set_threshold("safety_v1", 0.5)
    edited = document.edited(edits_of(config.config))
    assert edited.text.startswith('{\n  "metrics_to_run": ["safety"],\n  "x": 1,\n  "evaltui": {')
    assert edited.value["evaltui"]["criteria"] == {"safety_v1": 0.5}
