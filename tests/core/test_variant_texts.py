"""Variants as users write them."""

import pytest

from evaltui.core.model.variants import Change, Variant, VariantTextError, variant_of_text, variants_of
from evaltui.project.run_settings import read_table

PRO = Variant("pro", (Change("model.root_agent", "gemini-2.5-pro"),))


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("v:model=gemini-2.5-flash", {"model": "gemini-2.5-flash"}),
        ("v:model=ollama_chat/llama3:8b", {"model": "ollama_chat/llama3:8b"}),
        ("v: model.root = a , env.X = b,c, d ", {"model.root": "a", "env.X": "b,c, d"}),
        (
            "v:config.temperature=0,config.stop_sequences=[1,2]",
            {"config.temperature": 0, "config.stop_sequences": [1, 2]},
        ),
        ("v:config.thinking_config.thinking_budget=0", {"config.thinking_config.thinking_budget": 0}),
        ("v:env.N=1,env.EMPTY=", {"env.N": "1", "env.EMPTY": ""}),
        ("v:model.a=x,model=y", {"model": "y", "model.a": "x"}),
        ("v:git=main", {"git": "main"}),
        ("v:agent=../other,instruction.a b=p.md", {"agent": "../other", "instruction.a b": "p.md"}),
    ],
)
def test_the_text_of_an_option(text, changes):
    found = variant_of_text(text, {})
    assert found.to_json() == {"name": "v", "changes": changes}


def test_a_name_alone():
    assert variant_of_text("base", {}) == Variant("base")
    assert variant_of_text("pro", {"pro": PRO}) == PRO


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model=gemini-2.5-flash", "has no name. Write gemini-2.5-flash:model=gemini-2.5-flash"),
        ("por", "has no 'por'. Did you mean pro?"),
        ("v:modle=x", "'modle' is unknown. Did you mean model?"),
        ("v:PROMPT=x", "Did you mean env.PROMPT?"),
        ("v:temperature", "is not KEY=VALUE"),
        ("v:config=0", "needs a field, for example config.temperature=0"),
        ("v:env=0", "needs a variable"),
        ("v:model.=x", "needs an agent after the dot"),
        ("v:git.x=main", "git has nothing after a dot"),
        ("v:git=a,agent=b", "git and agent cannot be changed together"),
        ("v:model=a,model=b", "has model twice"),
        ("v:model=", "model is empty"),
        ("v:", "changes nothing"),
        ("all:model=x", "is not a name of a variant"),
        ("../x:model=x", "is not a name of a variant"),
    ],
)
def test_what_is_no_variant(text, said):
    with pytest.raises(VariantTextError, match=r".*") as raised:
        variant_of_text(text, {"pro": PRO})
    assert said in str(raised.value)


def test_the_tables_of_a_project(tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text(
        '[tool.evaltui.variants]\nflash = {model = "f"}\n'
        '[tool.evaltui.variants.pro]\nmodel.root_agent = "p"\nenv = {N = 1}\n'
        "config = {thinking_config = {thinking_budget = 0}}\n",
        encoding="utf-8",
    )
    settings, problems = read_table(file)
    assert problems == []
    assert settings.variants["flash"] == Variant("flash", (Change("model", "f"),))
    assert settings.variants["pro"].to_json()["changes"] == {
        "model.root_agent": "p",
        "env.N": "1",
        "config.thinking_config.thinking_budget": 0,
    }


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("x", 'is "x". Give a table for each variant'),
        ({"a": {}}, "a changes nothing"),
        ({"a": "pro"}, 'a is "pro". Give a table'),
        ({"a": {"modle": "x"}}, "Did you mean model?"),
        ({"a": {"model": 3}}, "model is 3. Give a string"),
        ({"a": {"git": {"x": "y"}}}, "Give a string"),
    ],
)
def test_tables_that_are_wrong(tables, said):
    with pytest.raises(VariantTextError, match=r".*") as raised:
        variants_of(tables)
    assert said in str(raised.value)
