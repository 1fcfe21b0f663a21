"""Tags of the chosen cases: what they have, and what is typed in their place."""

from __future__ import annotations

from evaltui.core.model.tags import typed_tags
from evaltui.documents.editing.references import References
from evaltui.text.figures import counted, some_of
from evaltui.workbench.case.case_plan import Plan, ids_at, numbers_in_sets, refusing
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.cases.chosen_cases import chosen

_MOST_NAMED = 6


def chosen_named(editing: Editing) -> str:
    """The chosen cases in short: an id, or how many."""
    cases = chosen(editing)
    return cases[0].eval_id if len(cases) == 1 else counted(len(cases), "case")


def common_tags(editing: Editing) -> list[str]:
    """The tags that all chosen cases have."""
    first, *others = ([*editing.sets.tags(case)] for case in chosen(editing))
    return [tag for tag in first if all(tag in tags for tags in others)]


def tags_hint(editing: Editing) -> str:
    """What only some of the chosen cases have, else the tags that there are."""
    common = common_tags(editing)
    tags = dict.fromkeys(tag for case in chosen(editing) for tag in editing.sets.tags(case))
    if some := [tag for tag in tags if tag not in common]:
        return f"Some also have {some_of(some, _MOST_NAMED)}; these stay"
    known = [tag for tag in editing.sets.known_tags() if tag not in common]
    return f"Known: {some_of(known, _MOST_NAMED)}" if known else "Separated by spaces"


def change_tags(editing: Editing, before: list[str], typed: str) -> None:
    """Gives the chosen cases what was added to the tags that they had in common, and takes what is gone."""
    wanted = typed_tags(typed)
    added = [tag for tag in wanted if tag not in before]
    removed = {tag for tag in before if tag not in wanted}
    named = chosen_named(editing)
    with refusing(editing.say):
        plan = Plan(editing)
        for path, numbers in numbers_in_sets(editing, chosen(editing)).items():
            here = plan.of(path)
            cases = [(here.eval_set_id, eval_id) for eval_id in ids_at(here, numbers)]
            References(here.config).change_tags(cases, added, removed)
        plan.do(f"tag {named}", editing.navigation.selection, lambda: editing.say(f"Tagged {named}"))
