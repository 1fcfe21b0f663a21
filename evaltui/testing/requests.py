"""What the options of pytest ask of a run, as `evaltui run` is asked."""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from typing import TYPE_CHECKING

from evaltui.commands.output import UsageError, agent_to_run, settings_of
from evaltui.commands.parser import parser_of
from evaltui.commands.repeat_arguments import confidence_of
from evaltui.testing.messages import RunOrder

if TYPE_CHECKING:
    from evaltui.files.run_settings import ConfigChoice
    from evaltui.runs.selection import RunRequest
    from evaltui.runs.sets import FileSets


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """What `evaltui run` understands of them. Raises UsageError, with the options by their names here."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            options = parser_of("run").parse(words)
    except SystemExit as error:
        message = said.getvalue().strip().removeprefix("evaltui run: ")
        raise UsageError(message.replace("argument --", "--evaltui-")) from error
    try:
        confidence_of(options)
    except UsageError as error:
        raise UsageError(str(error).replace("--", "--evaltui-")) from error
    return options


def request_of(order: RunOrder) -> tuple[RunRequest, FileSets]:
    """Raises UsageError, and EvalSetError for a config that cannot be read."""
    from evaltui.runs.selection import RunRequest
    from evaltui.runs.sets import FileSets

    options = options_of(order.words)
    # As google-adk's AgentEvaluator.
    choice: ConfigChoice = "beside" if options.adk_verdicts else "nearest"
    settings = replace(settings_of(options), confidence=confidence_of(options), config_choice=choice)
    request = RunRequest(
        agent_to_run(options),
        {path: None if eval_ids is None else list(eval_ids) for path, eval_ids in order.cases},
        skips_invalid=True,
        settings=settings,
    )
    return request, FileSets(order.agent_dir, options.config, choice=choice)
