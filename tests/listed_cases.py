"""Cases of which only that is known which a list shows."""

from evaltui.core.model.case_id import CaseOutline
from evaltui.core.model.stored_cases import StoredCase


class ListedCase(StoredCase):
    def __init__(self, outline):
        super().__init__("{}")
        self._outline = outline


def listed_case(eval_id, turns, texts=(), tools=()):
    return ListedCase(CaseOutline(eval_id, turns, texts[0] if texts else "", texts, tools))
