"""Asks a model, or a function of the user's in its place. Runs only in a child process."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..core.model.events import Json
from .functions import find_function
from .model_gate import Waits, through_gate
from .protocol import Reply
from .threads import in_thread

# More threads than calls at once, since a function that hangs keeps its thread.
_threads = ThreadPoolExecutor(max_workers=256, thread_name_prefix="ask")


JUDGE_SETTINGS = "`judge_model` of the criterion", "`judge_model_config` of the criterion"


async def ask(
    name: str,
    prompt: str,
    config: Json | None,
    agent_folder: Path | None,
    waits: Waits | None = None,
    *,
    settings: tuple[str, str] = JUDGE_SETTINGS,
) -> Reply:
    """Asks a model or a function with a prompt and returns its reply.

    `name` is a model that google-genai reaches, which gets `config` (a GenerateContentConfig), or
    `module:callable`: a sync or async function that gets the prompt and returns the text; see `find_function`
    for where it is searched. The time that the call waited at the gate is added to `waits`; `settings`
    say where `name` and `config` are set, for errors. Raises ValueError without a key, ModelError where the
    model gives no text, TypeError where the function returns something else, and any error of the function.
    """
    module, colon, function = name.partition(":")
    at_gate = waits or Waits()
    if colon:

        async def called() -> Reply:
            return await _ask_function(module, function, prompt, agent_folder)

        return await through_gate(name, lambda: len(prompt), called, lambda _: None, at_gate)
    # Imported only for a model, since google-genai is slow to import.
    from .native.gemini import ask_gemini

    return await ask_gemini(name, prompt, config, agent_folder, at_gate, settings)


async def _ask_function(module: str, name: str, prompt: str, agent_folder: Path | None) -> Reply:
    function = find_function(module, name, agent_folder)
    if inspect.iscoroutinefunction(function):
        answered = function(prompt)
    else:
        # In a thread, so that a slow function does not block other calls.
        answered = await in_thread(function, prompt, executor=_threads)
    text = await answered if inspect.isawaitable(answered) else answered
    if not isinstance(text, str):
        raise TypeError(
            f"{module}:{name} returned a {type(text).__name__}; it must return its answer as a str"
        )
    return Reply(text)
