"""The rubrics of a case, or of one of its turns, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evaltui.core.editing.case import CaseEditor
from evaltui.core.editing.json_paths import Changes, field_path, field_value
from evaltui.core.editing.session import RUBRIC_TYPES, RubricField, RubricsEditor
from evaltui.core.editing.set import EditBuilder
from evaltui.core.jsondoc.edits import Edit
from evaltui.core.model.json_values import value_at
from evaltui.workbench.fields import Field, Operation, Row, RowId, RowSource, required_text


def add_rubric(source: RowSource, turn: int | None) -> Operation:
    return Operation(
        "add a rubric to the case" if turn is None else "add a rubric to the turn",
        _build(source, turn, lambda rubrics: rubrics.add("")),
        _id(turn, len(_rubrics(source.editor, turn))),
        "value",
    )


def rubric_rows(source: RowSource, turn: int | None) -> Iterator[Row]:
    for number in range(len(_rubrics(source.editor, turn))):
        yield _row(source, turn, number)


def _rubrics(case: CaseEditor, turn: int | None) -> RubricsEditor:
    return case.rubrics if turn is None else case.turn(turn).rubrics


def _build(
    source: RowSource, turn: int | None, edit: Callable[[RubricsEditor], Changes | list[Edit]]
) -> EditBuilder:
    return source.build(lambda case: edit(_rubrics(case, turn)))


def _id(turn: int | None, number: int) -> RowId:
    return ("rubric", number) if turn is None else ("turn", turn, "rubric", number)


def _row(source: RowSource, turn: int | None, number: int) -> Row:
    data = source.editor.data
    path = (*_rubrics(source.editor, turn).path, number)

    def change(field: RubricField) -> Callable[[str], EditBuilder]:
        return lambda text: _build(source, turn, lambda rubrics: rubrics.change(number, field, text))

    def change_id(text: str) -> EditBuilder:
        return change("rubric_id")(required_text("the id of a rubric")(text))

    text = field_value(data, field_path(data, path, "rubric_content"), "text_property")
    description = field_value(data, path, "description")
    shown = text if isinstance(text, str) else description if isinstance(description, str) else ""
    rubric_id, kind = (field_value(data, path, name) for name in ("rubric_id", "type"))
    kinds = [*RUBRIC_TYPES, ""]
    next_kind = kinds[(kinds.index(kind) + 1) % len(kinds)] if kind in kinds else kinds[0]
    name = str(rubric_id or "")
    return Row(
        _id(turn, number),
        "part",
        "rubrics" if number == 0 else "",
        f"{name}  ({kind})" if kind else name,
        value=shown,
        shown=None if shown else "(nothing)",
        quiet=not shown,
        turn=turn,
        field=Field("change a rubric", shown, "text", change("text")),
        rename=Field("change the id of a rubric", name, "line", change_id, live=False),
        adds=(add_rubric(source, turn),),
        delete=Operation("delete a rubric", _build(source, turn, lambda rubrics: rubrics.delete(number))),
        cycle=Operation(
            f"make it a rubric of {next_kind}" if next_kind else "make it a rubric without a type",
            change("type")(next_kind),
        ),
        path=path if value_at(data, path) is not None else None,
    )
