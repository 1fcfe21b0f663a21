"""What the gates of several runs share that are made one after the other, as those of a matrix are."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaltui.core.model.budget import Amount
from evaltui.runner.parent.gate.estimates import Estimates
from evaltui.runner.parent.gate.ledger import Ledger
from evaltui.runner.parent.gate.limiter import Limiter


@dataclass
class SharedByGates:
    """The gate of the first run makes the limiter and the ledger, those of later runs go on with them."""

    spent: Amount = field(default_factory=Amount)
    """Of the budget, before the first run."""
    estimates: Estimates = field(default_factory=Estimates)
    limiter: Limiter | None = None
    ledger: Ledger | None = None
    """None without a budget, and before the first run."""

    @property
    def is_used_up(self) -> bool:
        """Whether the whole budget is spent."""
        return self.ledger is not None and self.ledger.is_used_up
