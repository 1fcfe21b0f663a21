"""Why an edit cannot be done."""

from __future__ import annotations

from evaltui.core.model.problems import JsonPath, format_path


class EditError(ValueError):
    """An edit that cannot be done: `message` is why, without the path at which it was to be done."""

    def __init__(self, message: str, path: JsonPath = ()) -> None:
        super().__init__(f"{format_path(path)}: {message}" if path else message)
        self.message = message
        self.path = path


def missing(path: JsonPath) -> EditError:
    return EditError("Nothing at this path", path)
