"""A schema that allows no keys but those that it names, to find what it has forgotten."""

import copy
from typing import Any

from jsonschema import Draft7Validator


def closed(schema: dict[str, Any]) -> Draft7Validator:
    schema = copy.deepcopy(schema)
    for one in (schema, *schema["definitions"].values()):
        if "properties" in one:
            one["additionalProperties"] = False
    return Draft7Validator(schema)
