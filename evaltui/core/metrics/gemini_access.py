"""Access to Gemini models: names of models and the configuration of a client."""

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
    """The access to Gemini models.

    `problem` tells why they cannot be asked, "" where they can; `fix` is the remedy. With
    `serves_other_names`, requests go to a server of the user's choice, whose models may have any name.
    """

    problem: str = ""
    fix: str = ""
    serves_other_names: bool = False


def is_gemini_name(model: str) -> bool:
    """Whether google-genai accepts a model name: `gemini-2.5-flash`, `models/gemma-3-27b-it`."""
    return _GEMINI_NAME.fullmatch(model) is not None


def gemini_access(environment: Mapping[str, str], *, default_credentials: bool) -> GeminiAccess:
    """The access of a google-genai client in an environment.

    `default_credentials` tells whether Google Cloud's application default credentials exist. Source of the
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
