"""Masks a worker's secrets and its folder of the agent in the messages that it sends to the run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltui.core.secrets import Secrets
from evaltui.runner.dask.messages import ItemEvent, Scored
from evaltui.runner.errors import AgentBrokenError, HostLostError, RequestFailedError


class WorkerMask(Secrets):
    """Replaces secrets that only the environment of a worker holds by `<NAME>`, and the worker's folder of
    the agent by the folder on the machine of the run.

    Other secrets are masked by the run itself, after scoring, as on one machine.
    """

    def __init__(self, environment: Mapping[str, str], here: Path, there: Path) -> None:
        """The agent is in the folder `here` on the worker and `there` on the machine of the run."""
        super().__init__(environment)
        folders = (_without_common_end(folder, there) for folder in (here, here.resolve()))
        self._replacements = dict(folders)
        self._folders = re.compile(
            "|".join(map(re.escape, sorted(self._replacements, key=len, reverse=True)))
        )
        folder_texts = {
            text
            for folder in self._replacements
            for text in (folder, json.dumps(folder)[1:-1], _in_json(folder))
        }
        self._byte_signs = tuple(
            text.encode("utf-8", "surrogatepass") for text in (*folder_texts, *self._signs)
        )

    def in_text(self, text: str) -> str:
        if (values := self._values_in(text)) is not None:
            text = values.sub(self._name, text)
        return self._folders.sub(lambda match: self._replacements[match.group()], text)

    def may_match(self, pickled: bytes) -> bool:
        """Whether pickled messages may contain a text to mask. It may say so wrongly, but misses none."""
        return any(sign in pickled for sign in self._byte_signs)

    def masked_message(self, message: Any) -> Any:
        """A copy of a message to the run, masked."""
        match message:
            case ItemEvent(text=text):
                return replace(message, text=_json_text(self.masked(json.loads(text))))
            case Scored(answer=AgentBrokenError() | RequestFailedError() | HostLostError() as error):
                masked = copy(error)
                masked.error = self.masked(error.error)
                masked.args = (str(masked.error),)
                return replace(message, answer=masked)
        return self.masked(message)


def _without_common_end(here: Path, there: Path) -> tuple[str, str]:
    """Both folders without the end that they have in common: a project is sent with its agent."""
    while here.name == there.name and here != here.parent:
        here, there = here.parent, there.parent
    return str(here), str(there)


def _in_json(text: str) -> str:
    return _json_text(text)[1:-1]


def _json_text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)
