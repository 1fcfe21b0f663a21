"""Texts that are true on one worker only: they leave it as what they are on the machine of the run."""

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


class OwnTexts(Secrets):
    """Secrets that only the environment of a worker holds, which becomes `<NAME>`, and the folder that it
    has of the agent's files.

    What else looks like a secret is left to the run, as on one machine: it is scored as it is.
    """

    def __init__(self, environment: Mapping[str, str], here: Path, there: Path) -> None:
        """The agent is `here` on the worker, and `there` on the machine of the run."""
        super().__init__(environment)
        folders = (_where_they_part(one, there) for one in (here, here.resolve()))
        self._instead = dict(folders)
        self._folders = re.compile("|".join(map(re.escape, sorted(self._instead, key=len, reverse=True))))
        texts = {text for one in self._instead for text in (one, json.dumps(one)[1:-1], _in_json(one))}
        self._spelt = tuple(one.encode("utf-8", "surrogatepass") for one in (*texts, *self._signs))

    def in_text(self, text: str) -> str:
        if (values := self._values_in(text)) is not None:
            text = values.sub(self._name, text)
        return self._folders.sub(lambda match: self._instead[match.group()], text)

    def are_in(self, pickled: bytes) -> bool:
        """Whether messages may have any of them; wrong in one direction only."""
        return any(one in pickled for one in self._spelt)

    def replaced(self, message: Any) -> Any:
        """A message to the run as it is there."""
        match message:
            case ItemEvent(text=text):
                return replace(message, text=_written(self.masked(json.loads(text))))
            case Scored(answer=AgentBrokenError() | RequestFailedError() | HostLostError() as failed):
                told = copy(failed)
                told.error = self.masked(failed.error)
                told.args = (str(told.error),)
                return replace(message, answer=told)
        return self.masked(message)


def _where_they_part(here: Path, there: Path) -> tuple[str, str]:
    """Both folders without the end that they have in common: a project is sent with its agent."""
    while here.name == there.name and here != here.parent:
        here, there = here.parent, there.parent
    return str(here), str(there)


def _in_json(text: str) -> str:
    return _written(text)[1:-1]


def _written(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)
