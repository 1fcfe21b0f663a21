"""README and guide are true: tables and keys of the code, links, words, sizes."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

import evaltui
import evaltui.adk
from evaltui.core.model.config import EvaltuiBlock
from evaltui.project import guide
from evaltui.project.configs import read_config
from evaltui.project.run_settings import RunSettings, read_table
from evaltui.workbench.actions import ACTIONS, Scope
from evaltui.workbench.keymap import key_name, read_keymap
from tests.commands.command_line import call
from tests.manual import COMMANDS, PAGES, README, ROOT, shown_options, up_to_date
from tests.manual_console import steps_of

WORDS_OF_THE_README = 700
WORDS_OF_THE_GUIDE = 18_000
LINK = re.compile(r"(?:\]\(|(?:src|href)=\")(?!https?:)([^)\"#\s]*)(?:#([\w-]+))?")
TABLE = re.compile(r"(?<!`)<!-- (\w+)[^>]*-->\n.*?<!-- /\1 -->", re.DOTALL)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)(?!<!--)")
LOOKS_LIKE_A_KEY = re.compile(
    r"(?:(?:ctrl|shift|alt)\+\S+|f\d{1,2}|esc|enter|tab|space|backspace|delete|home|end|.)"
)


def text_of(page):
    return page.read_text(encoding="utf-8")


def without_code(text):
    """The prose of a page: no code, comments and generated tables."""
    return re.sub(r"`[^`\n]*`|<!--.*?-->", "", FENCE.sub("", TABLE.sub("", text)))


every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@every_page
def test_tables_and_keys_are_those_of_the_code(page):
    text = text_of(page)
    assert text == up_to_date(text), "run: python -m tests.manual"


def test_an_unknown_name_of_a_table_or_an_action_is_an_error():
    with pytest.raises(ValueError, match="keyz"):
        up_to_date("<!-- keyz -->\n<!-- /keyz -->")
    with pytest.raises(ValueError, match="nothing_such"):
        up_to_date("`r`<!-- nothing_such -->")


def test_every_key_and_every_option_is_in_a_table():
    texts = "".join(map(text_of, PAGES))
    assert {scope for scope in Scope if f"<!-- keys {scope} -->" not in texts} == set()
    assert [f"`{action.id}`" for action in ACTIONS if f"| `{action.id}` |" not in texts] == []
    rows = re.findall(r"^\| `([^`]+)` \| ", text_of(guide.FOLDER / "options.md"), re.MULTILINE)
    words = {word.rstrip(",") for row in rows for word in row.split()}
    assert {
        name for command in COMMANDS for option in shown_options(command) for name in option.option_strings
    } <= words
    assert {*COMMANDS} - {"evaltui"} <= {row.split()[1] for row in rows if " " in row}


@every_page
def test_a_key_in_a_sentence_names_its_action(page):
    text = FENCE.sub("", TABLE.sub("", text_of(page)))
    keys = {key_name(key) for action in ACTIONS for key in action.keys}
    unnamed = [code for code in CODE.findall(text) if LOOKS_LIKE_A_KEY.fullmatch(code) and code in keys]
    assert unnamed == [], "write `key`<!-- action --> and run: python -m tests.manual"


def anchors(text):
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#{1,6} +(.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(FENCE.sub("", text_of(page))):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(text_of(file)), f"{target}#{anchor}"


def test_the_guide_has_a_page_per_topic():
    assert {path.stem for path in guide.FOLDER.glob("*.md")} == set(guide.TOPICS)
    for topic in guide.topics():
        assert re.match(r"# \S", text_of(guide.FOLDER / f"{topic.name}.md"))
        assert topic.summary.endswith(".")
        assert "\n" not in topic.summary
        # `evaltui help` lists it beside its name, on a line of 80 cells.
        assert len(topic.summary) <= 64, topic.summary


def test_every_page_is_at_most_three_steps_from_the_readme():
    reached = {README}
    for _ in range(3):
        links = [(page, target) for page in reached for target, _ in LINK.findall(text_of(page))]
        reached |= {(page.parent / target).resolve() for page, target in links if target.endswith(".md")}
    assert {*PAGES} <= reached


def test_help_and_errors_name_pages_that_exist():
    named = re.compile(r"`evaltui help ([a-z][\w-]+)`")
    texts = (path.read_text(encoding="utf-8") for path in guide.FOLDER.parent.rglob("*.py"))
    assert {name for text in texts for name in named.findall(text)} <= {*guide.TOPICS}


def test_the_guide_is_part_of_the_package():
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    assert guide.FOLDER == ROOT / "evaltui" / "guide"
    # Hatch ships every file of the package that git does not ignore.
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["evaltui"]}


def test_the_readme_is_short():
    assert written_words(text_of(README)) <= WORDS_OF_THE_README


@every_page
def test_json_in_a_page_is_a_config_or_an_eval_set(page, tmp_path):
    for language, block in FENCE.findall(text_of(page)):
        if language == "json" and '"eval_set_id"' in block:
            file = tmp_path / "a.evalset.json"
            file.write_text(block, encoding="utf-8")
            assert call("lint", file) == 0
        elif language == "json":
            file = tmp_path / "test_config.json"
            whole = block if block.startswith("{") else f'{{"criteria": {{"safety_v1": 1}}, {block}}}'
            file.write_text(whole, encoding="utf-8")
            config, problems = read_config(file)
            assert config is not None, problems
            assert problems == []


# What agents of frameworks import.
FRAMEWORKS = ("agents", "langchain", "langgraph", "pydantic_ai")


@every_page
def test_python_in_a_page_compiles_and_its_imports_are_public(page):
    for language, block in FENCE.findall(text_of(page)):
        if language == "python":
            tree = compile(block, page.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] not in FRAMEWORKS:
                    public = {"evaltui": {*evaltui.__all__, "events"}, "evaltui.adk": {*evaltui.adk.__all__}}
                    assert {alias.name for alias in node.names} <= public[node.module]


@every_page
def test_toml_in_a_page_is_a_keymap_or_settings(page, tmp_path):
    for language, block in FENCE.findall(text_of(page)):
        if language == "toml":
            file = tmp_path / "keys.toml"
            file.write_text(block, encoding="utf-8")
            if block.startswith("[tool.evaltui"):
                settings, problems = read_table(file)
                assert problems == []
                assert settings != RunSettings(file=file)
                continue
            assert read_keymap(file).keys
            assert read_keymap(file).problems == ()


def test_every_member_of_the_evaltui_block_is_explained():
    text = text_of(guide.FOLDER / "criteria.md")
    assert [name for name in EvaltuiBlock.model_fields if f"\n| `{name}` | " not in text] == []


def test_the_page_about_the_code_names_files_that_exist():
    page = text_of(ROOT / "evaltui" / "architecture.md").partition("## The life of a run")[2]
    package = guide.FOLDER.parent
    named = [code for code in CODE.findall(page) if re.fullmatch(r"[a-z_]+(?:/[a-z_.]+)+", code)]
    assert len(named) > 20
    assert [
        name
        for name in named
        if not any((package / one).exists() for one in (name, f"{name}.py", f"../{name}"))
    ] == []


def written_words(text):
    """The number of words of a page that a person writes: no comments, generated tables and outputs."""
    text = TABLE.sub("", text)
    for step in reversed([*steps_of(text)]):
        start, end = step.body
        if step.output is not None:
            text = text[:start] + "".join(f"{one.line}\n" for one in step.commands) + text[end:]
    text = re.sub(r"<!--.*?-->|<img[^>]*>", "", text, flags=re.DOTALL)
    # Of a table, the lines between cells are no words.
    return sum(any(map(str.isalnum, word)) for word in text.split())


def test_the_guide_is_short():
    words = {name: written_words(text_of(guide.FOLDER / f"{name}.md")) for name in guide.TOPICS}
    assert sum(words.values()) <= WORDS_OF_THE_GUIDE, words
