"""The variant that `evaluate` is given: the plan of its run, and a host that has made the changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from evaltui.files.interpreters import InterpreterError
from evaltui.files.variant_agents import as_variant
from evaltui.files.variant_settings import VariantTextError, variant_of_text
from evaltui.files.variants import VariantFileError, with_places
from evaltui.runner.parent.starting import (
    HostSettings,
    StartedHost,
    VariantError,
    require_variant,
    start_host,
)
from evaltui.runner.plan import RunPlan


@contextmanager
def changed(plan: RunPlan, text: str, python: str | None) -> Iterator[RunPlan]:
    """The plan of a run of a variant, while it is run; its files are seen from the current folder. Without a
    text the plan as it is.

    Raises ValueError for what is no variant, what is not there, and an agent that cannot be changed.
    """
    if not text:
        yield plan
        return
    if plan.agent.in_process or plan.agent.url:
        what = "an agent behind a network" if plan.agent.url else "an agent object"
        raise ValueError(f"variant: {what} cannot be changed; give a folder, a file or a module")
    try:
        variant = with_places(variant_of_text(text, {}), plan.agent.folder, Path())
        with as_variant(plan.agent, variant, python) as agent:
            yield replace(plan, agent=agent)
    except (VariantTextError, VariantFileError, InterpreterError) as error:
        raise ValueError(f"variant: {error}") from error


async def started_as(plan: RunPlan) -> StartedHost:
    """A host of the plan's agent that has made the changes. Raises ValueError where they do not fit.

    What else is wrong with an agent is told as of any other.
    """
    host = start_host(HostSettings(plan.agent, plan.settings.timeout))
    try:
        await require_variant(host)
    except BaseException as error:
        await host.host.kill()
        if isinstance(error, VariantError):
            raise ValueError(f"variant: {error}") from error
        raise
    return host
