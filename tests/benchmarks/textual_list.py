"""A large set in a list and a filter as Textual has them: `textual_list.py SET_FILE`."""

import json
import sys
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.widgets import Input, OptionList, Static


class TextualList(App[None]):
    BINDINGS: ClassVar = [("slash", "filter", "Filter"), ("escape", "show_all", "Show all")]

    def __init__(self, cases: list[tuple[str, str]]) -> None:
        super().__init__()
        self._cases = cases

    def compose(self) -> ComposeResult:
        yield Input()
        yield Static(id="count")
        yield OptionList(*(name for name, _ in self._cases))

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def action_filter(self) -> None:
        self.query_one(Input).focus()

    def action_show_all(self) -> None:
        self.query_one(Input).clear()
        self.query_one(OptionList).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        # What is typed at once is looked for once.
        self.set_timer(0.005, lambda: self._keep(event.value))

    def _keep(self, word: str) -> None:
        if word != self.query_one(Input).value:
            return
        kept = [name for name, text in self._cases if word in text]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(kept)
        self.query_one("#count", Static).update(f" {len(kept)} of {len(self._cases)}")


def searched(case: dict) -> str:
    said = (part["text"] for turn in case["conversation"] for part in turn["user_content"]["parts"])
    return "\n".join([case["eval_id"], *said]).casefold()


cases = json.loads(Path(sys.argv[1]).read_text("utf-8"))["eval_cases"]
TextualList([(case["eval_id"], searched(case)) for case in cases]).run()
