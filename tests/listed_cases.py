"""Cases of which only that is known which a list shows."""

from evaltui.core.model.case_id import CaseSummary
from evaltui.core.model.stored_cases import StoredCase


class ListedCase(StoredCase):
    def __init__(self, summary):
        super().__init__("{}")
        self._summary = summary


def listed_case(eval_id, turns, texts=(), tools=()):
    return ListedCase(CaseSummary(eval_id, turns, texts[0] if texts else "", texts, tools))
