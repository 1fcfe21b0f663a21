"""The one identity that a case has everywhere."""

from __future__ import annotations

from typing import NamedTuple


class CaseId(NamedTuple):
    """A case: the file that it is in, and its id there.

    `path` is as seen from the agent's folder, with `/` on every system, so that it is the same on another
    machine. Several files may have the same set id, which is a label only: it stands for the path where
    nobody knows the file, as in results of google-adk and of eval sets that were given as models.
    """

    path: str
    eval_id: str
