"""Base classes of the models of eval data, and how models are written."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class DataModel(BaseModel):
    """A model whose validator is built when it is first needed: a command needs few of them."""

    model_config = ConfigDict(defer_build=True)


def dump(model: BaseModel) -> dict[str, Any]:
    """JSON data as ADK's own eval set writer has it: snake_case, without defaults and nulls."""
    return model.model_dump(mode="json", exclude_unset=True, exclude_defaults=True, exclude_none=True)
