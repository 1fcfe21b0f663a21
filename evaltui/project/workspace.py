"""The eval sets of an agent: where each is, and which of them selectors choose.

Works on parsed JSON and loads no models, so that a thousand cases can be listed at once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.old_formats import kind_of
from evaltui.core.model.problems import Problem, SelectionError
from evaltui.core.model.tags import TagChoice, Tags, tags_in
from evaltui.documents.files import is_there, target_of
from evaltui.documents.json_text import parse, read_text, why_unreadable
from evaltui.documents.yaml_text import YAML_SUFFIXES
from evaltui.project.agents import is_agent
from evaltui.project.configs import config_above, config_file, config_files, configs_near, find_config
from evaltui.project.eval_set_file import EvalSetFile, read_eval_set_file
from evaltui.project.eval_sets import is_readable, read_data, set_kind
from evaltui.project.folders import (
    CONFIG_NAME,
    SET_SUFFIXES,
    agent_folder,
    has_agent_file,
    has_set_name,
    is_called_set,
    is_entered,
    is_json,
    is_lost_folder,
    is_of_tests,
    is_project,
    json_files,
    json_files_below,
    levels_above,
    subfolders,
)
from evaltui.project.run_settings import PROJECT_FILE
from evaltui.text.figures import plural, short_list
from evaltui.text.values import did_you_mean

_SETS_BELOW = ("eval*", "test*")
_SETS_BESIDE = ("eval*", "tests")
# Endings of files that are meant to be read as data.
_DATA = (*YAML_SUFFIXES, ".jsonl", ".json5", ".jsonc", ".evalset", ".txt")
# Words without which a file cannot be an eval set, so that other JSON need not be parsed.
_TELLTALES = ('"eval_cases"', '"evalCases"', '"expected_tool_use"')
SET_KEYS = {"eval_set_id", "evalSetId", "eval_cases", "evalCases"}

# Bytes; a larger file that is no set by its beginning is not read to explain that.
_LARGEST_SKIPPED = 4 * 1024 * 1024

Selection = tuple[EvalSetFile, tuple[str, ...] | None]


@dataclass(frozen=True)
class Skipped:
    """A file that looks like an eval set and is not read, and the reason."""

    path: Path
    reason: str
    is_set: bool = False
    """Whether it resembles an eval set."""


@dataclass(frozen=True)
class Workspace:
    """The eval sets that belong to an agent in `folder`."""

    folder: Path
    sets: tuple[EvalSetFile, ...]
    skipped: tuple[Skipped, ...] = ()
    config: Path | None = None
    """The config for all sets; None where each has its own."""
    in_project: bool = True
    """Whether the project around the folder was searched, too."""

    @cached_property
    def by_case_path(self) -> Mapping[str, EvalSetFile]:
        """The sets by the path that their cases have in `CaseId`."""
        return {eval_set.case_path: eval_set for eval_set in self.sets}

    def find(self, case: CaseId, eval_set_id: str, *, by_label: bool) -> CaseId | None:
        """The current id of a case of a run; None for a missing case.

        For a run that has set ids only (`by_label`), also None where several files have the set id.
        """
        if by_label:
            paths = self._labels.get(eval_set_id, [])
            if len(paths) != 1:
                return None
            if case.path == eval_set_id:
                case = CaseId(paths[0], case.eval_id)
        eval_set = self.by_case_path.get(case.path)
        return None if eval_set is None or eval_set.number(case.eval_id) is None else case

    def shares_label(self, eval_set_id: str) -> bool:
        """Whether several files have this set id."""
        return len(self._labels.get(eval_set_id, [])) > 1

    @cached_property
    def _labels(self) -> Mapping[str, list[str]]:
        labels: dict[str, list[str]] = {}
        for eval_set in self.sets:
            labels.setdefault(eval_set.eval_set_id, []).append(eval_set.case_path)
        return labels


def open_workspace(
    agent_dir: Path,
    paths: Sequence[str | Path] = (),
    before: Workspace | None = None,
    config: Path | None = None,
    *,
    in_project: bool = True,
) -> Workspace:
    """Find the eval sets of an agent, sorted by path, each file once however many names it has.

    Searches `searched_places` and `paths`, which are folders and files of any name. Unchanged cases of
    `before` are the same objects. `config` replaces the config of each set.
    Without `in_project`, nothing beside or above the folder is searched, as for an agent with a URL.
    """
    folder = agent_folder(agent_dir)
    named = [path for path in map(Path, paths) if path.is_file()]
    named_folders = [path for path in map(Path, paths) if path.is_dir()]
    earlier = {eval_set.path: eval_set for eval_set in before.sets} if before else {}
    sets: dict[str, EvalSetFile] = {}
    skipped: dict[str, Skipped] = {}
    for file, origin in [
        *_places(folder, map(Path, paths), in_project=in_project),
        *((file, "given") for file in named),
    ]:
        real = os.path.realpath(file)
        if real in sets:
            continue
        if is_set(file, named_folders) or (origin == "given" and file in named):
            sets[real] = read_eval_set_file(file, origin, folder, earlier.get(file))
            skipped.pop(real, None)
        elif passed_over := skipped_file(file):
            skipped[real] = passed_over
    missing = [Skipped(path, "no such file or folder") for path in map(Path, paths) if not path.exists()]
    return Workspace(
        folder,
        tuple(sorted(with_tags(sets.values(), config), key=lambda eval_set: eval_set.path)),
        tuple(sorted([*skipped.values(), *missing], key=lambda skip: skip.path)),
        config,
        in_project,
    )


def with_tags(sets: Collection[EvalSetFile], config: Path | None = None) -> Iterator[EvalSetFile]:
    """The sets with tags from their configs, or from the config for all of them."""
    config_of = config_files((eval_set.path for eval_set in sets), config)
    data = {
        path: read_data(path) if os.path.lexists(path) else None for path in dict.fromkeys(config_of.values())
    }
    for eval_set in sets:
        yield eval_set.but(tags=tags_of(data[config_of[eval_set.path]], eval_set.eval_set_id))


def tags_of(config: Any, set_id: str) -> Tags | None:
    """The tags of the cases of a set in the data of its config; None for a config with a problem."""
    return None if isinstance(config, Problem) else tags_in(config, set_id)


def sets_below(folder: Path, named_from: Path) -> list[EvalSetFile]:
    """The eval sets anywhere below a folder, sorted by path.

    `named_from` is the folder that their cases are named from: the agent's, where there is one.
    """
    below = json_files_below([folder], keep_sets=True)
    files = {os.path.realpath(file): file for file in below if is_set(file, [folder])}
    return [read_eval_set_file(file, "given", named_from) for file in sorted(files.values())]


def searched_places(workspace: Workspace) -> str:
    """Where the eval sets of a workspace are looked for, in words."""
    own = "the folder itself, eval*/ and test*/ in it"
    if not workspace.in_project:
        return own
    if levels_above(workspace.folder):
        return f"{own}, eval*/ and tests/ beside it and above, up to the root of its project"
    return f"{own}; it is in no project (pyproject.toml, .git), whose eval*/ and tests/ would be searched too"


def set_folders(agent_dir: Path, paths: Sequence[str | Path] = ()) -> Iterator[Path]:
    """The folders in and below which eval sets of an agent are searched, its own folder first."""
    folder = agent_folder(agent_dir)
    yield folder
    # The folders of eval sets beside an agent, and beside each folder that it is in within its project.
    yield from (sets_folder for level in levels_above(folder) for sets_folder in _folders_of_sets(level))
    yield from (path for path in map(Path, paths) if path.is_dir())


def set_files(agent_dir: Path, paths: Sequence[str | Path] = ()) -> Iterator[Path]:
    """Every eval set of an agent and every config of a set; a file may come twice."""
    folders: set[tuple[Path, bool]] = set()
    for file, _ in _places(agent_folder(agent_dir), map(Path, paths)):
        if file.name == CONFIG_NAME:
            yield file
        elif is_set(file):
            yield file
            group = (file.parent, set_kind(file) == "dataset")
            if group in folders:
                continue
            folders.add(group)
            yield from configs_near(file)
            yield from (path for path in [config_above(file)] if path is not None)
    for file in map(Path, paths):
        yield from (path for path in (file, config_file(file)) if path.is_file())


def _folders_of_sets(level: Path) -> list[Path]:
    beside = subfolders(level, _SETS_BESIDE)
    # A checkout of evaltui, in a folder of projects, stands for itself.
    return [
        child
        for child in beside
        if not has_agent_file(child)
        and (child.name.lower() == "tests" or not (is_agent(child) or _is_other(child)))
    ]


def _is_other(folder: Path) -> bool:
    """Whether a folder is another project; a submodule, where `.git` is a file, may hold eval sets alone."""
    has_table = os.path.exists(folder / PROJECT_FILE)  # noqa: PTH110
    return has_table or os.path.isdir(folder / ".git")  # noqa: PTH112


def _places(folder: Path, paths: Iterable[Path], *, in_project: bool = True) -> Iterator[tuple[Path, str]]:
    """Every JSON file that may be an eval set, with its folder as seen from the agent's."""
    for file in json_files(folder):
        yield file, "agent directory"
    below = [child for child in subfolders(folder, _SETS_BELOW) if not has_agent_file(child)]
    for file in json_files_below(below, has_agent_file):
        yield file, f"{file.parent.relative_to(folder).as_posix()}/"
    for number, level in enumerate(levels_above(folder) if in_project else [], start=1):
        for file in json_files_below(_folders_of_sets(level), has_agent_file):
            yield file, f"{'../' * number}{file.parent.relative_to(level).as_posix()}/"
    for file in json_files_below((path for path in paths if path.is_dir()), keep_sets=True):
        yield file, "given"


def is_set(path: Path, named_folders: Collection[Path] = ()) -> bool:
    """Whether one of `json_files` is an eval set, or a folder in which there may be some.

    By its name, else by what it holds; one that cannot be read, or whose content is elsewhere, counts where
    eval sets are kept: in folders of that name, and in `named_folders`. Other programs call files
    `*.test.json`, too: of these, all but JSON that is no set.
    An empty list counts: it is a test without turns.
    """
    if os.path.isdir(path) or is_lost_folder(path):  # noqa: PTH112
        return True
    if not is_json(path):
        return False
    if path.name.lower().endswith(".evalset.json") or set_kind(path):
        return True
    if not has_set_name(path):
        return not is_readable(path) and _is_kept_as_set(path, named_folders)
    data = read_data(path)
    if isinstance(data, dict):
        return bool(data.keys() & SET_KEYS)
    return isinstance(data, Problem) or data == [] or kind_of(data) is not None


def _is_kept_as_set(path: Path, named_folders: Collection[Path]) -> bool:
    """Whether a file is in or below a folder of eval sets of its agent or project, or in or below one of
    `named_folders`."""
    within = takewhile(lambda level: not (is_project(level) or has_agent_file(level)), path.parents)
    return any(is_of_tests(level) or level in named_folders for level in within)


def is_set_for_pytest(file: Path, root: Path) -> bool:
    """Whether pytest collects a file: an eval set by its name, or by its content in a folder of eval sets."""
    return is_set(file) and (has_set_name(file) or keeps_sets(file.parent, root))


def keeps_sets(folder: Path, root: Path) -> bool:
    """Whether eval sets of any name are searched in a folder below the root of the tests."""
    below = [level for level in (folder, *folder.parents) if level != root and level.is_relative_to(root)]
    return (is_agent(folder) or any(map(is_of_tests, below))) and all(map(is_entered, below))


def lost_folders_of_sets(folder: Path) -> list[Path]:
    """The links to nowhere in a folder that have the name of a folder of eval sets."""
    patterns = _SETS_BELOW if is_agent(folder) or is_of_tests(folder) else _SETS_BESIDE
    return [child for child in subfolders(folder, patterns) if is_lost_folder(child)]


def may_be_eval_set(path: Path) -> bool:
    """Whether the content of a file is meant as an eval set, right or wrong. Raises OSError."""
    text = read_text(path)
    if not isinstance(text, str) or not any(word in text for word in _TELLTALES):
        return False
    data = parse(text)
    if isinstance(data, dict):
        return bool(data.keys() & {"eval_cases", "evalCases"})
    return isinstance(data, Problem) or data == [] or kind_of(data) is not None


def skipped_file(file: Path) -> Skipped | None:
    """A file with the name or look of an eval set that is not read, and the reason; None for others."""
    if file.name == CONFIG_NAME:
        return None
    if not is_json(file) and not is_called_set(file):
        return None
    if not is_json(file):
        # Of a file with another ending, such as a backup, the name says that it is not in use.
        is_data = file.suffix.lower() in _DATA
        return Skipped(
            file, "called an eval set and not read: its name does not end in .json", is_set=is_data
        )
    if not is_readable(file) and isinstance(unread := read_data(file), Problem):
        return Skipped(file, unread.message)
    try:
        if file.stat().st_size > _LARGEST_SKIPPED or not may_be_eval_set(file):
            return None
    except OSError as error:
        return Skipped(file, why_unreadable(file, error))
    reason = f"looks like an eval set, but its name ends in neither {' nor '.join(SET_SUFFIXES)}"
    return Skipped(file, reason, is_set=True)


def skipped_in(files: Iterable[Path]) -> list[Skipped]:
    """The files that look like eval sets but are not read, with the reasons."""
    return [skip for file in files if not is_set(file) and (skip := skipped_file(file)) is not None]


def skipped_below(folder: Path) -> list[Skipped]:
    """The files below a folder that look like eval sets but are not read, with the reasons."""
    files = json_files_below([folder], keep_sets=True)
    return skipped_in(file for file in files if not is_set(file, [folder]))


def _unsearched_sets(workspace: Workspace) -> Iterator[Skipped]:
    """The sets in subfolders of the agent's folder that are not searched, recognised by their names."""
    others = [child for child in subfolders(workspace.folder, ("*",)) if not has_agent_file(child)]
    read = {os.path.realpath(eval_set.path) for eval_set in workspace.sets}
    reason = f"not run: it is neither in {workspace.folder} nor in eval*/ or test*/ there; name it to run it"
    for file in json_files_below(others, has_agent_file):
        if has_set_name(file) and os.path.realpath(file) not in read and is_set(file):
            yield Skipped(file, reason)


def passed_over(workspace: Workspace, selectors: Sequence[str]) -> list[Skipped]:
    """The skipped files in the folders of selectors; without selectors, those of the workspace."""
    if not selectors:
        return [*workspace.skipped, *_unsearched_sets(workspace)]
    folders = (folder for selector in selectors for folder in _folders_named(workspace, selector))
    return [skip for folder in folders for skip in skipped_below(folder)]


def skipped_hint(skipped: Iterable[Skipped]) -> str:
    """A hint on files that need only another name to be eval sets; "" for none."""
    other_names, no_json = list[str](), list[str]()
    for skip in skipped:
        if skip.is_set:
            (other_names if is_json(skip.path) else no_json).append(str(skip.path))
    hints = list[str]()
    if other_names:
        phrase = plural(len(other_names), "looks like an eval set", "look like eval sets")
        rename = f"rename to NAME{SET_SUFFIXES[0]}, or run and open by path"
        hints.append(f"{short_list(other_names)} {phrase} without the name: {rename}")
    if no_json:
        named = plural(len(no_json), "is called an eval set", "are called eval sets")
        write = f"write it as JSON to NAME{SET_SUFFIXES[0]}, or rename it"
        hints.append(f"{short_list(no_json)} {named} and not read: {write}")
    return ". ".join(hints)


def select(
    workspace: Workspace, selectors: Sequence[str] = (), tags: TagChoice | None = None
) -> list[Selection]:
    """The sets that selectors name, and of each the cases that are meant, None for all; with `tags` those of
    them with these tags.

    A selector is `SET` or `SET:CASE,CASE...`, where SET is a file, the id of a set, or a folder; none at all
    means everything. Files and folders need not belong to the workspace. Ids may contain colons and commas:
    an id that exists is preferred to two that do not. Raises SelectionError, and EvalSetError where a config
    with errors may be why no case has a tag.
    """
    chosen = _selections_of(workspace, selectors)
    return _tagged(chosen, tags, workspace.config) if tags else chosen


def _tagged(selections: Sequence[Selection], choice: TagChoice, config: Path | None) -> list[Selection]:
    """The cases with chosen tags; unreadable sets stay, as loading them says why."""
    sets = list(with_tags([eval_set for eval_set, _ in selections], config))
    picked = [
        (eval_set, [case.eval_id for case in eval_set.cases] if eval_ids is None else eval_ids)
        for eval_set, (_, eval_ids) in zip(sets, selections, strict=True)
    ]
    all_tags = {
        tag for eval_set, ids in picked for eval_id in ids for tag in (eval_set.tags or {}).get(eval_id, ())
    }
    unread = any(eval_set.tags is None or eval_set.format is None for eval_set in sets)
    unknown = choice.unknown(all_tags)
    chosen: list[Selection] = []
    for (eval_set, ids), (_, eval_ids) in zip(picked, selections, strict=True):
        tags = eval_set.tags
        if tags is None or eval_set.format is None:
            chosen.append((eval_set, eval_ids))
        elif tagged_ids := tuple(eval_id for eval_id in ids if choice.keeps(tags.get(eval_id, ()))):
            chosen.append((eval_set, eval_ids if len(tagged_ids) == len(ids) else tagged_ids))
    if (unknown is None or unread) and chosen:
        return chosen
    for eval_set in sets:
        find_config(eval_set.path, config)
    if unknown is not None:
        option = "--tag" if unknown in choice.tagged else "--not-tag"
        raise SelectionError(f"{option}: {no_tag(unknown, all_tags)}")
    raise SelectionError(f"{choice}: no selected case; nothing to run")


def no_tag(unknown: str, tags: Collection[str]) -> str:
    """The clause for a tag that no selected case has, with the existing tags."""
    hint = did_you_mean(unknown, tags) or _list_of(sorted(tags))
    return f"no selected case has the tag {unknown!r}{hint}"


def _selections_of(workspace: Workspace, selectors: Sequence[str]) -> list[Selection]:
    if not selectors:
        hint = skipped_hint(workspace.skipped)
        if not workspace.sets:
            raise SelectionError(
                f"no eval sets found for {workspace.folder}; looked for JSON files with eval cases in "
                f"{searched_places(workspace)}{hint and f'. {hint}'}"
            )
        _refuse_without(workspace.skipped)
        return [
            (eval_set, None) for eval_set in _not_empty(workspace.sets, f"every set of {workspace.folder}")
        ]
    chosen: dict[Path, Selection] = {}
    for selector in selectors:
        for eval_set, cases in _resolve(workspace, selector):
            key = target_of(eval_set.path)
            earlier = chosen.get(key, (eval_set, ()))[1]
            both = None if earlier is None or cases is None else tuple(dict.fromkeys((*earlier, *cases)))
            chosen[key] = (eval_set, both)
    _refuse_without(skip for skip in passed_over(workspace, selectors) if target_of(skip.path) not in chosen)
    return list(chosen.values())


def _refuse_without(skipped: Iterable[Skipped]) -> None:
    """Raises SelectionError for files that would be left out of all sets because of their names."""
    if hint := skipped_hint(skipped):
        raise SelectionError(f"{hint}. To run without, name the eval sets to run")


def _resolve(workspace: Workspace, selector: str) -> list[Selection]:
    if sets := _named(workspace, selector):
        return [(eval_set, None) for eval_set in _not_empty(sets, selector)]
    failure: SelectionError | None = None
    colons = [index for index, letter in enumerate(selector) if letter == ":"]
    for colon in reversed(colons):
        name, cases = selector[:colon], selector[colon + 1 :]
        if sets := _named(workspace, name):
            try:
                return _with_cases(sets, name, cases)
            except SelectionError as error:
                failure = failure or error
    name = selector.partition(":")[0]
    hint = hint_for_unknown(name, workspace.sets)
    raise failure or SelectionError(f"no eval set {name!r} in {workspace.folder.resolve().name}{hint}")


def hint_for_unknown(name: str, sets: Sequence[EvalSetFile]) -> str:
    """The clause for an id that no set has: what cannot be read, and may have it, else the ids there are."""
    unread = (eval_set for eval_set in sets if eval_set.format is None)
    if reasons := [problem.located() for eval_set in unread for problem in eval_set.errors]:
        return f" as far as it can be read: {short_list(reasons)}"
    ids = [eval_set.eval_set_id for eval_set in sets]
    return did_you_mean(name, ids) or _list_of(ids)


def _folders_named(workspace: Workspace, name: str) -> list[Path]:
    """The folder that a selector names; None for a file or the id of a set."""
    if any(eval_set.eval_set_id == name for eval_set in workspace.sets):
        return []
    return [
        path for path in (Path(name), workspace.folder / name) if name and is_there(path) and path.is_dir()
    ][:1]


def _named(workspace: Workspace, name: str) -> list[EvalSetFile]:
    """The sets that a file, an id or a folder names, in this order of preference."""
    paths = list(filter(is_there, (Path(name), workspace.folder / name)))
    for path in paths:
        if name and path.is_file():
            own = [eval_set for eval_set in workspace.sets if target_of(eval_set.path) == target_of(path)]
            return own or [read_eval_set_file(path, "given", workspace.folder)]
    by_id = [eval_set for eval_set in workspace.sets if eval_set.eval_set_id == name]
    if len(by_id) > 1:
        files = " and ".join(str(eval_set.path) for eval_set in by_id)
        raise SelectionError(f"{name!r} is the id of several sets, {files}. Name the file")
    if by_id:
        return by_id
    for path in _folders_named(workspace, name):
        if sets := sets_below(path, workspace.folder):
            return sets
        hint = skipped_hint(skipped_below(path))
        raise SelectionError(f"no eval sets found in {path}{hint and f'. {hint}'}")
    return []


def _with_cases(sets: Sequence[EvalSetFile], name: str, cases: str) -> list[Selection]:
    existing_ids = [case.eval_id for eval_set in sets for case in eval_set.cases]
    eval_ids = (cases,) if cases in existing_ids else tuple(cases.split(","))
    if unread := [eval_set for eval_set in sets if eval_set.problems and not eval_set.cases]:
        # Loading it says what is wrong with it, which matters more than what is not in it.
        return [(eval_set, eval_ids) for eval_set in unread]
    for case in eval_ids:
        if not case:
            raise SelectionError(f"case id missing after {name}:")
        if case not in existing_ids:
            hint = did_you_mean(case, existing_ids) or _list_of(existing_ids)
            raise SelectionError(f"no case {case!r} in {name}{hint}")
    picked: list[Selection] = []
    for eval_set in sets:
        own = {case.eval_id for case in eval_set.cases}
        if here := tuple(case for case in eval_ids if case in own):
            picked.append((eval_set, here))
    return picked


def _not_empty(sets: Sequence[EvalSetFile], name: str) -> Sequence[EvalSetFile]:
    """The sets with cases or problems: loading an unreadable set says what is wrong."""
    if any(eval_set.cases or eval_set.problems for eval_set in sets):
        return sets
    raise SelectionError(f"{name} has no cases; nothing to run")


def _list_of(names: Sequence[str]) -> str:
    return f". Known: {short_list(names, 5)}" if names else ""
