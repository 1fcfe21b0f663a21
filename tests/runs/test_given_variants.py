"""`evaluate` with a variant."""

from __future__ import annotations

import re

import pytest
from variant_agents import write_cases

from evaltui import Status, evaluate
from evaltui.core.model.variants import Change, Variant
from evaltui.project import guide
from evaltui.runs.run_file import RunFile

FUNCTION = """
    import os

    def root_agent(message, session):
        return f"{message} {os.environ.get('TONE', 'plain plain')}"
"""


@pytest.fixture
def agent(write_agent, tmp_path, monkeypatch):
    folder = write_agent(FUNCTION)
    write_cases(folder, "{} plain plain")
    monkeypatch.chdir(tmp_path)
    return folder


async def test_a_variant_is_run_and_its_log_says_so(agent, tmp_path):
    assert (await evaluate(agent, variant="base")).status is Status.PASSED
    result = await evaluate(agent, variant="warm:env.TONE=warm warm", results_dir=tmp_path / "runs")
    assert result.status is Status.FAILED
    assert RunFile(result.log).header.variant == Variant("warm", (Change("env.TONE", "warm warm"),))


@pytest.mark.parametrize(
    ("variant", "why"),
    [
        ("v:model=gemini-b", "variant: model cannot be changed in a function"),
        ("v:modle=x", "variant: 'modle' is unknown. Did you mean model?"),
        ("v:agent=nowhere", "variant: agent=nowhere: nowhere does not exist"),
        ("v:agent=my_agent", "variant: changes nothing: agent=my_agent has the same code"),
        (3, "variant: 3 is wrong"),
    ],
)
async def test_what_does_not_fit_is_a_sentence(agent, variant, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        await evaluate(agent, variant=variant)


async def test_objects_are_not_changed():
    with pytest.raises(ValueError, match="variant: an agent object cannot be changed"):
        await evaluate(
            lambda message, session: message,
            {"eval_set_id": "s", "eval_cases": []},
            variant="v:env.TONE=warm",
        )


async def test_the_loop_of_the_guide_runs(monkeypatch):
    import ast

    monkeypatch.chdir(guide.FOLDER.parents[1])
    page = (guide.FOLDER / "variants.md").read_text()
    [block] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict = {}
    await eval(compile(block, "variants.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    assert set(names["rates"].values()) == {1.0}
