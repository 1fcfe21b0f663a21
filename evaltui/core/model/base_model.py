"""What every model of eval data is derived from."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class DataModel(BaseModel):
    """A model whose validator is built when it is first needed: a command needs few of them."""

    model_config = ConfigDict(defer_build=True)
