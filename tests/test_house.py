"""What holds for all of the code: libraries, circles of files, sizes, and the page that describes it."""

import ast
import re
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import evaltui

PACKAGE = Path(evaltui.__file__).parent
ROOT = PACKAGE.parent

LOOKED_AT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)
# Lists of what does not hold yet. They only ever become shorter.
TOO_LONG: set[str] = set()
FUNCTIONS_TOO_LONG: set[str] = set()
# Small files with one importer, and why they stand alone.
SMALL_WITH_REASON = {
    "__main__.py": "begins before anything is imported",
    "events.py": "a public name",
}
NO_EXCEPTION = "these are none any more, take them from the list"
LINES_OF_A_FILE = 600
LINES_OF_A_FUNCTION = 60
LINES_OF_A_SMALL_FILE = 40

# What is imported under a name that is not its distribution's.
DISTRIBUTIONS = {
    "a2a": "a2a-sdk",
    "agents": "openai-agents",
    "dotenv": "python-dotenv",
    "google.adk": "google-adk",
    "google.genai": "google-genai",
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "jinja2": "Jinja2",
    "markupsafe": "MarkupSafe",
    "opentelemetry": "opentelemetry-api",
}
OF_EXTRAS = {
    "a2a-sdk",
    "aiohttp",
    "googleapis-common-protos",
    "opentelemetry-proto",
    "textual-serve",
    "google-adk",
    "opentelemetry-api",
    "protobuf",
    "Jinja2",
    "MarkupSafe",
    "genai-prices",
    "dask",
    "distributed",
    "cryptography",
}
# Another library imports it for a function that evaltui calls, or its modules are imported by name.
IMPORTED_BY_OTHERS = {"cryptography", "opentelemetry-proto"}
# Agents bring them: they are never installed for evaltui.
FRAMEWORKS = {"langchain-core", "langgraph", "langsmith", "openai", "openai-agents", "pydantic-ai"}


@cache
def modules():
    """Every module of evaltui by name: its path and the nodes of its tree."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("evaltui", *path.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.level:
                above = parts[: len(parts) - node.level]
                node.module, node.level = ".".join([*above, *filter(None, [node.module])]), 0
        found[name] = path, [one for one in nodes if isinstance(one, LOOKED_AT)]
    return found


def imported(nodes):
    """What a module imports, wherever it does: `from a import b` is `a.b`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def graph():
    """The modules of evaltui that each one imports, TYPE_CHECKING or not."""
    names = modules().keys()
    return {
        name: {
            found
            for one in imported(nodes)
            if (found := one if one in names else one.rpartition(".")[0]) in names and found != name
        }
        for name, (_, nodes) in modules().items()
    }


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def shown(path):
    return path.relative_to(PACKAGE).as_posix()


def test_no_files_import_each_other_in_a_circle():
    TopologicalSorter(graph()).prepare()


def test_no_file_is_too_long():
    long = {shown(path): lines(path) for path, _ in modules().values() if lines(path) > LINES_OF_A_FILE}
    new = sorted(long.keys() - TOO_LONG)
    assert not new, f"over {LINES_OF_A_FILE} lines: {new}"
    assert not (over := TOO_LONG - long.keys()), f"{NO_EXCEPTION}: {over}"


def test_no_function_is_too_long():
    long = {
        f"{shown(path)} {node.name}"
        for path, nodes in modules().values()
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LINES_OF_A_FUNCTION
    }
    new = sorted(long - FUNCTIONS_TOO_LONG)
    assert not new, f"over {LINES_OF_A_FUNCTION} lines: {new}"
    assert not (over := FUNCTIONS_TOO_LONG - long), f"{NO_EXCEPTION}: {over}"


def test_a_small_file_has_several_importers_or_a_reason():
    importers = Counter(one for imports in graph().values() for one in imports)
    small = {
        shown(path)
        for name, (path, _) in modules().items()
        if path.name != "__init__.py" and lines(path) < LINES_OF_A_SMALL_FILE and importers[name] <= 1
    }
    new = sorted(small - SMALL_WITH_REASON.keys())
    assert not new, f"they belong to the file that imports them: {new}"
    assert not (over := SMALL_WITH_REASON.keys() - small), f"{NO_EXCEPTION}: {over}"


def outside(nodes):
    """The distributions that a module imports from."""
    for name in imported(nodes):
        top, _, rest = name.partition(".")
        if top == "google":
            top = f"google.{rest.partition('.')[0]}"
        if top not in {*sys.stdlib_module_names, "evaltui"}:
            yield DISTRIBUTIONS.get(top, top.replace("_", "-"))


def declared(requirements):
    return {re.split(r"[^\w-]", one, maxsplit=1)[0] for one in requirements}


def test_what_is_imported_is_declared_and_the_other_way_round():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    always, of_extras = declared(project["dependencies"]), OF_EXTRAS
    assert of_extras == declared(
        [
            *extras["adk"],
            *extras["a2a"],
            *extras["prices"],
            *extras["report"],
            *extras["serve"],
            *extras["traces"],
            *extras["dask"],
        ]
    )
    used = {one for _, nodes in modules().values() for one in outside(nodes)} - FRAMEWORKS
    assert not FRAMEWORKS & declared(
        [one for extra in (project["dependencies"], *extras.values()) for one in extra]
    )
    # It is pytest that loads the plugin.
    assert not used - always - of_extras - {"pytest"}, "imported, and not in pyproject.toml"
    assert not (always | of_extras) - used - IMPORTED_BY_OTHERS, "in pyproject.toml, and imported nowhere"


# What is read and written with an extra.
WITH_AN_EXTRA = {
    "evaltui.core.cost.prices",
    "evaltui.adk.results_manager",
    "evaltui.traces.receiver.http_server",
    "evaltui.reports.html.templates",
    "evaltui.runner.dask.workers",
    "evaltui.runner.dask.executor",
    "evaltui.runner.dask.worker",
    "evaltui.serving.server",
    "evaltui.traces.formats.protobuf",
    "evaltui.traces.receiver.http",
    "evaltui.traces.receiver.parts",
}


def test_only_adapters_and_few_files_import_what_an_extra_brings():
    extra = {*OF_EXTRAS, *FRAMEWORKS}
    importers = {name for name, (_, nodes) in modules().items() if not extra.isdisjoint(outside(nodes))}
    assert {name for name in importers if ".adapters." not in name} == WITH_AN_EXTRA


def test_the_page_about_the_house_lists_every_room():
    page = (ROOT / "evaltui" / "architecture.md").read_text(encoding="utf-8")
    tree = re.search(r"## The packages\n+```\n(.*?)```", page, re.DOTALL)[1]
    listed, around = [], []
    for line in tree.splitlines():
        indent, name = re.fullmatch(r"( *)(\S+)/ +\S.+", line).groups()
        around[len(indent) // 2 :] = [name]
        listed.append("/".join(around))
    folders = [
        path.relative_to(ROOT).as_posix()
        for path in [PACKAGE, *PACKAGE.rglob("*")]
        if path.is_dir() and path.name != "__pycache__" and any(one.is_file() for one in path.iterdir())
    ]
    missing, gone = set(folders) - set(listed), set(listed) - set(folders)
    assert not missing, f"add a line each to evaltui/architecture.md: {sorted(missing)}"
    assert not gone, f"take these from evaltui/architecture.md: {sorted(gone)}"
    assert len(listed) == len(set(listed))


def test_the_files_that_ci_names_are_there():
    root = Path(__file__).parents[1]
    named = re.findall(
        r"^    (tests/[^\s:]+)", (root / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(named) > 20
    assert [name for name in named if not (root / name).exists()] == []
