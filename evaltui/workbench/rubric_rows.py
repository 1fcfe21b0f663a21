"""The rubrics of a case, or of one of its turns, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evaltui.core.editing import session
from evaltui.core.editing.json_paths import case_path, get, list_at, place, turn_path, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.workbench.editing import Make
from evaltui.workbench.fields import CaseSource, Field, Operation, Row, RowId, required_text


def add_rubric(source: CaseSource, turn: int | None) -> Operation:
    case = source.case
    return Operation(
        "add a rubric to the case" if turn is None else "add a rubric to the turn",
        lambda data, _: session.add_rubric(data, case, "", turn=turn),
        _id(turn, len(list_at(source.data, _path(source, turn)))),
        "value",
    )


def rubric_rows(source: CaseSource, turn: int | None) -> Iterator[Row]:
    path = _path(source, turn)
    for number in range(len(list_at(source.data, path))):
        yield _row(source, turn, number, (*path, number))


def _path(source: CaseSource, turn: int | None) -> JsonPath:
    data = source.data
    owner = case_path(data, source.case) if turn is None else turn_path(data, source.case, turn)
    return place(data, owner, "rubrics")


def _id(turn: int | None, number: int) -> RowId:
    return ("rubric", number) if turn is None else ("turn", turn, "rubric", number)


def _row(source: CaseSource, turn: int | None, number: int, path: JsonPath) -> Row:
    data, case = source.data, source.case

    def changes(name: session.RubricField) -> Callable[[str], Make]:
        return lambda text: lambda data, _: session.set_rubric(data, case, number, name, text, turn=turn)

    def change_id(text: str) -> Make:
        return changes("rubric_id")(required_text("the id of a rubric")(text))

    text = get(data, place(data, path, "rubric_content"), "text_property")
    described = get(data, path, "description")
    shown = text if isinstance(text, str) else described if isinstance(described, str) else ""
    rubric_id, kind = (get(data, path, name) for name in ("rubric_id", "type"))
    kinds = [*session.RUBRIC_TYPES, ""]
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
        field=Field("change a rubric", shown, "text", changes("text")),
        rename=Field("change the id of a rubric", name, "line", change_id, live=False),
        adds=(add_rubric(source, turn),),
        delete=Operation(
            "delete a rubric", lambda data, _: session.delete_rubric(data, case, number, turn=turn)
        ),
        cycle=Operation(
            f"make it a rubric of {next_kind}" if next_kind else "make it a rubric without a type",
            lambda data, _: session.set_rubric(data, case, number, "type", next_kind, turn=turn),
        ),
        path=path if value_at(data, path) is not None else None,
    )
