"""Operations on whole sets and cases: add, copy, rename, delete, convert, reorder and move to another set.

Every function shows a message, done or refused, and is one step for undo.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.core.model.tags import typed_tags
from evaltui.documents.editing import set as eval_sets
from evaltui.documents.editing.references import References
from evaltui.documents.editing.set import SetEditor
from evaltui.documents.edits import EditError
from evaltui.project.config_references import left_behind
from evaltui.project.eval_sets import migrated_text, read_eval_set, set_name
from evaltui.project.folders import SET_SUFFIXES, agent_folder
from evaltui.text.figures import counted, short_list
from evaltui.text.keys import key_of
from evaltui.workbench.case.case_plan import (
    Plan,
    gathering_moves,
    ids_at,
    ids_by_file,
    keys_at,
    moves,
    numbers_in_sets,
    numbers_of,
    show_errors,
)
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.cases.navigation import CaseClipboard
from evaltui.workbench.state import Selection

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet

# New


def folder_for_new_set(editing: Editing) -> Path:
    """The folder for a new set: that of the selected set if it belongs to the agent, else the agent's
    folder."""
    eval_set = editing.sets.by_case_path(editing.navigation.selection.path)
    if eval_set is None or eval_set.origin == "given":
        return agent_folder(editing.sets.agent_dir)
    return eval_set.path.parent


def new_set_problem(editing: Editing, set_id: str) -> str | None:
    """Why a new set cannot have this id, as a sentence."""
    if problem := eval_sets.set_id_problem(set_id, [listed.eval_set_id for listed in editing.sets.listed]):
        return problem
    path = set_path(editing, set_id)
    return f"{path.name} already exists" if path.exists() else None


def new_set(editing: Editing, set_id: str) -> bool:
    """Creates an empty, unsaved set in its own file and selects it."""
    text = eval_sets.new_set_text(set_id, time.time())
    if not editing.new_file(set_path(editing, set_id), text):
        return False
    editing.say(f"Created {set_id}   {key_of('new_case')}  Add case")
    return True


def set_path(editing: Editing, set_id: str) -> Path:
    """The file of a new set with this id."""
    return folder_for_new_set(editing) / f"{set_id}.evalset.json"


def new_case(editing: Editing) -> bool:
    """Adds a case with one turn after the selected case, or at the end of a selected set, and selects it."""
    path, case = editing.navigation.file, editing.navigation.selection.case
    if path is None:
        return False
    with show_errors(editing.say):
        eval_set = SetEditor(editing.data(path))
        ids, eval_id = eval_set.eval_ids, eval_set.proposed_id
        index = ids.index(case.eval_id) + 1 if case and case.eval_id in ids else None
        after = Selection(editing.navigation.selection.path, eval_id)
        done = editing.do(f"add {eval_id}", path, lambda editor: editor.add_case(index, eval_id), after=after)
        if done:
            editing.navigation.show(after)
            editing.say(f"Added {eval_id}   {key_of('rename')}  Rename case")
        return done
    return False


# One case, one set


def case_id_problem(editing: Editing, path: Path, case: int) -> Callable[[str], str | None]:
    """A function that tells why a case cannot have an id, as a sentence."""
    try:
        eval_set = SetEditor(editing.data(path))
    except (OSError, EvalSetError) as error:
        reason = str(error)
        return lambda _: reason
    return lambda eval_id: eval_set.eval_id_problem(eval_id, case)


def rename_case(editing: Editing, case: CaseId, number: int, eval_id: str) -> bool:
    """Renames a case, which must have this number in its set, from 0."""
    moved, file = CaseId(case.path, eval_id), editing.sets.file_of(case.path)
    marking = editing.navigation.marking

    def rename(eval_set: SetEditor) -> None:
        if eval_set.eval_ids[number : number + 1] != [case.eval_id]:
            raise EditError(f"{file.name} changed meanwhile; select the case again")
        eval_set.rename_case(number, eval_id)

    label, after = f"rename {case.eval_id} to {eval_id}", Selection(*moved)
    if not editing.do(label, file, rename, after=after, moved={case: moved}):
        return False
    if case in marking:
        marking.toggle([case])
        marking.toggle([moved])
    editing.navigation.show(after)
    editing.say(f"Renamed {case.eval_id} to {eval_id}")
    return True


def set_id_problem(editing: Editing, path: Path, set_id: str) -> str | None:
    """Why a set cannot have this id, as a sentence; its own id is allowed."""
    eval_set = editing.sets.by_path(path)
    if eval_set is not None and set_id == eval_set.eval_set_id:
        return None
    return eval_sets.set_id_problem(
        set_id, [listed.eval_set_id for listed in editing.sets.listed if listed.path != path]
    )


def rename_set(editing: Editing, path: Path, set_id: str) -> bool:
    """Renames a set; its file keeps its name."""
    eval_set = editing.sets.by_path(path)
    if eval_set is None or eval_set.eval_set_id == set_id:
        return False
    return editing.do(
        f"rename {eval_set.eval_set_id} to {set_id}",
        path,
        lambda eval_set: eval_set.rename(set_id),
        after=Selection(eval_set.case_path),
    )


# Several cases


def duplicate(editing: Editing) -> None:
    """Duplicates the chosen cases; in each set the copies come after its last chosen case."""
    with show_errors(editing.say):
        cases = _chosen_and_seen(editing)
        plan = Plan(editing)
        copies: list[CaseId] = []
        for path, numbers in numbers_in_sets(editing, cases).items():
            index = numbers[-1] + 1
            here = plan.of(path)
            here.copy_to(here, numbers, index)
            copies += keys_at(here, editing.sets.case_path(path), index, len(numbers))

        def done() -> None:
            editing.navigation.clear_marks()
            editing.navigation.show(Selection(*copies[0]))
            editing.say(f"Duplicated {_name_cases(cases)}")

        plan.do(f"duplicate {_name_cases(cases)}", Selection(*copies[0]), done)


def delete(editing: Editing) -> None:
    """Deletes the chosen cases without a question: undo restores them."""
    with show_errors(editing.say):
        cases = _chosen_and_seen(editing)
        plan = Plan(editing)
        for path, numbers in numbers_in_sets(editing, cases).items():
            plan.of(path).delete_cases(numbers)

        def done() -> None:
            editing.navigation.clear_marks()
            editing.say(f"Deleted {_name_cases(cases)}   {key_of('undo')} undo")

        plan.do(f"delete {_name_cases(cases)}", _selection_beside(editing, cases), done)


def move(editing: Editing, step: int) -> None:
    """Moves each chosen case one place up (-1) or down (1) among the shown cases of its set."""
    filtered = editing.navigation.filtered.matching
    with show_errors(editing.say):
        cases = _chosen_and_seen(editing)
        plan = Plan(editing)
        for path, numbers in numbers_in_sets(editing, cases).items():
            here = plan.of(path)
            shown = filtered.get(editing.sets.case_path(path)) or range(here.count)
            here.move_cases(moves(shown, set(numbers), step))
        if not plan.edits:
            editing.say("Already the first" if step < 0 else "Already the last")
            return
        direction = "up" if step < 0 else "down"
        plan.do(
            f"move {_name_cases(cases)} {direction}",
            editing.navigation.selection,
            lambda: editing.say(f"Moved {_name_cases(cases)} {direction}"),
        )


def copy(editing: Editing, *, cut: bool = False) -> None:
    """Puts the chosen cases on the clipboard for `paste`, which moves them there if they are `cut`."""
    with show_errors(editing.say):
        cases = _chosen_and_seen(editing)
        paths = numbers_in_sets(editing, cases)
        sources = {path: SetEditor(editing.data(path), editing.config_for_edit(path)) for path in paths}
        editing.navigation.marking.clipboard = CaseClipboard(cases, cut, sources)
        editing.navigation.clear_marks()
        editing.say(f"{'Cut' if cut else 'Copied'} {_name_cases(cases)}   {key_of('paste_case')} paste")


def paste(editing: Editing) -> None:
    """Pastes the copied or cut cases after the selected case, or at the end of a selected set."""
    clipboard, path = editing.navigation.marking.clipboard, editing.navigation.file
    if clipboard is None or path is None:
        return
    with show_errors(editing.say):
        ids = SetEditor(editing.data(path)).eval_ids
        case = editing.navigation.selection.case
        index = ids.index(case.eval_id) + 1 if case and case.eval_id in ids else len(ids)
        if clipboard.cut:
            _paste_cut(editing, clipboard, path, index)
        else:
            _paste_copied(editing, clipboard, path, index)


def _paste_copied(editing: Editing, clipboard: CaseClipboard, path: Path, index: int) -> None:
    plan = Plan(editing)
    at = index
    for origin, eval_ids in ids_by_file(editing, clipboard.cases).items():
        source = clipboard.sources[origin]
        config_path = editing.sets.config_path
        if config_path(origin) == config_path(path):
            source = replace(source, config=plan.of(path).config)
        numbers = numbers_of(source, origin, eval_ids)
        source.copy_to(plan.of(path), numbers, at)
        at += len(numbers)
    named = _name_cases(clipboard.cases)
    (last,) = keys_at(plan.of(path), editing.sets.case_path(path), at - 1, 1)

    def done() -> None:
        # What is pasted once more comes after it.
        editing.navigation.show(Selection(*last))
        editing.say(f"Pasted {named}")

    plan.do(f"paste {named}", Selection(*last), done)


def _paste_cut(editing: Editing, clipboard: CaseClipboard, path: Path, index: int) -> None:
    plan = Plan(editing)
    moved: dict[CaseId, CaseId] = {}
    origins = numbers_in_sets(editing, clipboard.cases)
    at = index
    if own := origins.pop(path, None):
        # Those that were above leave their places.
        plan.of(path).move_cases(gathering_moves(own, index))
        at = index + sum(number >= index for number in own)
    for origin, numbers in origins.items():
        if reason := editing.refuses_to_edit(origin):
            raise EditError(reason)
        source = plan.of(origin)
        left = editing.sets.case_path(origin)
        before = [CaseId(left, eval_id) for eval_id in ids_at(source, numbers)]
        source.move_to(plan.of(path), numbers, at)
        moved.update(
            zip(before, keys_at(plan.of(path), editing.sets.case_path(path), at, len(numbers)), strict=True)
        )
        at += len(numbers)
    named = _name_cases(clipboard.cases)
    (last,) = keys_at(plan.of(path), editing.sets.case_path(path), at - 1, 1)

    def done() -> None:
        editing.navigation.marking.clipboard = None
        editing.navigation.show(Selection(*last))
        editing.say(f"Moved {named}   {key_of('undo')} undo")

    plan.do(f"move {named}", Selection(*last), done, moved)


def _chosen_and_seen(editing: Editing) -> tuple[CaseId, ...]:
    """The chosen cases. Raises EditError where the filter hides the selected case."""
    cases = editing.navigation.chosen
    if not editing.navigation.marking.marked and editing.navigation.is_hidden(editing.navigation.selection):
        raise EditError(f"The selected case is filtered out   {key_of('step_back')} clear filter")
    return cases


def _name_cases(cases: Sequence[CaseId]) -> str:
    """Cases in short: an id, or their number."""
    return cases[0].eval_id if len(cases) == 1 else counted(len(cases), "case")


def _selection_beside(editing: Editing, gone: Sequence[CaseId]) -> Selection:
    """The selection after cases are deleted: the next shown case that stays, else the one before."""
    here = editing.navigation.selection
    eval_set = editing.sets.by_case_path(here.path)
    if eval_set is None or here.case not in gone:
        return here
    shown = editing.navigation.filtered.matching.get(eval_set.case_path) or range(len(eval_set.cases))
    left = {case.eval_id for case in gone if case.path == eval_set.case_path}
    before: str | None = None
    passed = False
    for number in shown:
        eval_id = eval_set.cases[number].eval_id
        passed = passed or eval_id == here.eval_id
        if eval_id not in left:
            if passed:
                return Selection(eval_set.case_path, eval_id)
            before = eval_id
    return Selection(eval_set.case_path, before)


def convert_file(path: Path) -> tuple[EvalSet | None, tuple[Problem, ...]]:
    """The eval set in a file of an old format, None where it has errors, and its problems."""
    loaded = read_eval_set(path)
    return loaded.eval_set, loaded.problems


def name_for_converted(old: Path) -> str:
    """A free file name beside the old file: `late.evalset.json` for `late.test.json`."""
    name = set_name(old)
    candidates = [f"{name}.evalset.json", f"{name}_converted.evalset.json"]
    more = (f"{name}_converted_{number}.evalset.json" for number in count(2))
    return next(file_name for file_name in chain(candidates, more) if not old.with_name(file_name).exists())


def converted_name_problem(editing: Editing, old: Path, name: str) -> str | None:
    """Why the new file cannot have this name, as a sentence."""
    new = old.parent / name
    if not name.endswith(SET_SUFFIXES) or name in SET_SUFFIXES:
        return f"File names of eval sets end in {' or '.join(SET_SUFFIXES)}"
    if new.parent != old.parent or new.name != name:
        return "Enter a name without folders"
    if new.exists() or editing.open_file(new) is not None:
        return f"{name} already exists"
    return None


async def convert(
    editing: Editing, old: Path, eval_set: EvalSet, new: Path, say: Callable[[str], None]
) -> bool:
    """Writes a converted set to a new file and selects it; the old file stays as it is."""
    behind = left_behind(old, eval_set.eval_set_id, new)
    if not editing.new_file(new, migrated_text(eval_set, new)) or not await editing.save(new):
        return False
    lost = [problem.located() for problem in behind]
    say(". ".join([f"Wrote {new.name}; the old file is unchanged", *lost]))
    return True


_MAX_NAMED = 6


def name_chosen(editing: Editing) -> str:
    """The chosen cases in short: an id, or their number."""
    return _name_cases(editing.navigation.chosen)


def common_tags(editing: Editing) -> list[str]:
    """The tags that all chosen cases have."""
    first, *others = ([*editing.sets.tags(case)] for case in editing.navigation.chosen)
    return [tag for tag in first if all(tag in tags for tags in others)]


def tags_hint(editing: Editing) -> str:
    """A hint: the tags of only some of the chosen cases, else the other tags in use."""
    common = common_tags(editing)
    tags = dict.fromkeys(tag for case in editing.navigation.chosen for tag in editing.sets.tags(case))
    if some := [tag for tag in tags if tag not in common]:
        return f"Some also have {short_list(some, _MAX_NAMED)}; these stay"
    others = [tag for tag in editing.sets.known_tags() if tag not in common]
    return f"Known: {short_list(others, _MAX_NAMED)}" if others else "Separated by spaces"


def change_tags(editing: Editing, before: list[str], typed: str) -> None:
    """Adds the new tags to the chosen cases, and removes the deleted ones, compared with their common
    tags."""
    new_tags = typed_tags(typed)
    added = [tag for tag in new_tags if tag not in before]
    removed = {tag for tag in before if tag not in new_tags}
    named = name_chosen(editing)
    with show_errors(editing.say):
        plan = Plan(editing)
        for path, numbers in numbers_in_sets(editing, editing.navigation.chosen).items():
            here = plan.of(path)
            cases = [(here.eval_set_id, eval_id) for eval_id in ids_at(here, numbers)]
            References(here.config).change_tags(cases, added, removed)
        plan.do(f"tag {named}", editing.navigation.selection, lambda: editing.say(f"Tagged {named}"))
