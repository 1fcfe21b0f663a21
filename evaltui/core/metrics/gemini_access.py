"""Whether a Gemini model can be asked: its name, and what a client is configured with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# What the Gemini API and Vertex AI call the models of google-genai's own kind.
_GEMINI_NAME = re.compile(
    r"((models|publishers/google/models|projects/[^/]+/locations/[^/]+/publishers/google/models)/)?"
    r"(gemini|gemma|learnlm|model-optimizer)-[\w.@-]+"
    r"|tunedModels/[\w-]+|projects/[^/]+/locations/[^/]+/endpoints/[\w-]+"
)
_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")


@dataclass(frozen=True)
class GeminiAccess:
    """`problem` is what there is not to ask a Gemini model with, "" where all is there; `fix` what to do.

    With `serves_other_names`, the requests go to a server of the user's choice, whose models may be called
    anything.
    """

    problem: str = ""
    fix: str = ""
    serves_other_names: bool = False


def is_gemini_name(model: str) -> bool:
    """Whether a model's name is one that google-genai takes: `gemini-2.5-flash`, `models/gemma-3-27b-it`."""
    return _GEMINI_NAME.fullmatch(model) is not None


def gemini_access(environment: Mapping[str, str], *, default_credentials: bool) -> GeminiAccess:
    """How a client of google-genai would be configured by these variables.

    `default_credentials` is whether Google Cloud's application default credentials are there. Source of the
    rules: google-genai 2.30 to 3.4.
    """
    key = any(environment.get(name) for name in _KEYS)
    # Also where the environment chooses Vertex AI; GOOGLE_VERTEX_BASE_URL counts where code does.
    elsewhere = bool(environment.get("GOOGLE_GEMINI_BASE_URL"))
    if not _uses_vertex(environment):
        if key:
            return GeminiAccess(serves_other_names=elsewhere)
        return GeminiAccess(
            "GOOGLE_API_KEY is not set",
            "Set it in .env",
            elsewhere,
        )
    # A location without a project makes google-genai pass a key over.
    express = key and not environment.get("GOOGLE_CLOUD_LOCATION")
    if environment.get("GOOGLE_CLOUD_PROJECT") or express or elsewhere or default_credentials:
        return GeminiAccess(serves_other_names=elsewhere)
    return GeminiAccess(
        "no Vertex AI project or login",
        "Set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or log in with gcloud auth application-default "
        "login",
    )


def _uses_vertex(environment: Mapping[str, str]) -> bool:
    chosen = (environment.get(f"GOOGLE_GENAI_USE_{name}") for name in ("ENTERPRISE", "VERTEXAI"))
    first = next((value for value in chosen if value is not None), "")
    return first.lower() in ("true", "1")
