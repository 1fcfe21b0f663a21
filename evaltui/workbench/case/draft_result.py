"""The result of a case by what is typed of it and not applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.messages import DraftChanged, Messages
from evaltui.workbench.result.rescoring import Rescoring
from evaltui.workbench.result.scoring_again import Events

if TYPE_CHECKING:
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.core.secrets import Secrets
    from evaltui.files.eval_set_file import EvalSetFile
    from evaltui.workbench.state import CaseOutcome


class DraftResult:
    """The draft of a case, scored in the background. `events_of` and `secrets` are those of `Rescoring`."""

    def __init__(
        self,
        events_of: Callable[[CaseId], Events | None],
        messages: Messages,
        secrets: Callable[[], Secrets],
    ) -> None:
        self.case: CaseId | None = None
        """The case that the draft is of; None without one."""
        self.draft: StoredCase | None = None
        """The case as it is typed."""
        self._result: CaseOutcome | None = None
        self._messages = messages
        self._rescoring = Rescoring(events_of, self._scored, secrets)

    @property
    def is_waiting(self) -> bool:
        """Whether the draft is about to be scored."""
        return self.case is not None and self._rescoring.is_waiting(self.case)

    def of(self, case: CaseId, scored: CaseOutcome) -> CaseOutcome | None:
        """What the result of a case is by its draft; None where the draft says nothing else of it."""
        result = self._result if case == self.case else None
        return result if result is not None and result.run == scored.run else None

    def score(self, scored: CaseOutcome | None, opened: EvalSetFile | None) -> None:
        """Scores a result of the case by the draft; `opened` is None where that tells nothing."""
        self._rescoring.stop()
        if self.case and self.draft and scored and opened and opened.config:
            self._rescoring.score([(self.case, scored)], opened, opened.config.config, self.draft)
        if self._result is not None and not self.is_waiting:
            self._result = None
            self._messages.publish(DraftChanged())

    def _scored(self, outcomes: Sequence[tuple[CaseId, CaseOutcome | None]]) -> None:
        for _, self._result in outcomes:
            self._messages.publish(DraftChanged())

    async def finish(self) -> None:
        """Waits until the draft has been scored."""
        await self._rescoring.finish()
