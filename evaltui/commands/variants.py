"""The variants that a command runs, and the agent with each of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaltui.commands.output import UsageError
from evaltui.core.model.variants import ALL_VARIANTS, BASE, Variant, VariantTextError, variant_of_text
from evaltui.project.agent_address import AgentAddress, as_variant
from evaltui.project.interpreters import InterpreterError
from evaltui.project.run_settings import RunSettings
from evaltui.project.variants import VariantFileError, with_places
from evaltui.runner.starting import VariantError


def variants_of_options(options: argparse.Namespace, settings: RunSettings) -> tuple[Variant, ...]:
    """The variants that the options name, in their order; empty without `--variant`. Raises UsageError."""
    by_name: dict[str, Variant] = {}
    for variant in _variants(options, settings):
        if by_name.setdefault(variant.name, variant) != variant:
            raise UsageError(f"--variant: two different variants are named {variant.name}")
    if by_name and (options.url or options.watch):
        what = "an agent behind a network cannot be changed from here" if options.url else "not with --watch"
        raise UsageError(f"--variant: {what}")
    if by_name and (options.resume or options.retry_errors):
        raise UsageError("--variant: a run that is resumed keeps its own; leave out --variant")
    return tuple(by_name.values())


def _variants(options: argparse.Namespace, settings: RunSettings) -> Iterator[Variant]:
    folder = settings.file.parent if settings.file else Path()
    defined = {
        name: with_places(variant, options.agent_dir, folder) for name, variant in settings.variants.items()
    }
    for text in options.variant:
        if text == ALL_VARIANTS:
            if not defined:
                raise UsageError(
                    f"--variant {ALL_VARIANTS}: [tool.evaltui.variants] of pyproject.toml has none"
                )
            yield defined.get(BASE, Variant(BASE))
            yield from defined.values()
            continue
        try:
            variant = variant_of_text(text, defined)
        except VariantTextError as error:
            raise UsageError(f"--variant: {error}") from error
        yield variant if defined.get(text) == variant else with_places(variant, options.agent_dir, Path())


@contextmanager
def with_variant(
    options: argparse.Namespace, agent: AgentAddress, variant: Variant | None
) -> Iterator[AgentAddress]:
    """The agent with the variant, while it is run. Raises UsageError."""
    if variant is None:
        yield agent
        return
    try:
        with as_variant(agent, variant, options.python) as changed:
            yield changed
    except (VariantFileError, InterpreterError) as error:
        raise UsageError(_refused(variant, error)) from error


def _refused(variant: Variant, why: object) -> str:
    return f"--variant {variant.name}: {why}"


@contextmanager
def refusing_variant(agent: AgentAddress) -> Iterator[None]:
    """Turns the error of a variant that does not fit its agent into a UsageError."""
    try:
        yield
    except VariantError as error:
        assert agent.variant is not None
        raise UsageError(_refused(agent.variant.variant, error)) from error
