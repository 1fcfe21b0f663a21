"""The forms in which judges are asked to answer, as Gemini's `response_schema`: what is so written parses.

Properties come in the order in which they stand here, reasons before verdicts.
"""

from __future__ import annotations

from evaltui.core.metrics.judges.judge import Schema


def _object(**properties: Schema) -> Schema:
    names = list(properties)
    return {"type": "OBJECT", "properties": properties, "required": names, "property_ordering": names}


def _list(items: Schema) -> Schema:
    return {"type": "ARRAY", "items": items}


def _one_of(*words: str) -> Schema:
    return {"type": "STRING", "enum": list(words)}


_TEXT: Schema = {"type": "STRING"}
_TEXT_OR_NULL: Schema = {"type": "STRING", "nullable": True}
_YES_OR_NO: Schema = {"type": "BOOLEAN"}

VALIDITY = _object(reasoning=_TEXT, is_the_agent_response_valid=_one_of("valid", "invalid"))
FULFILMENT = _object(
    rubrics=_list(_object(id=_TEXT, rationale=_TEXT, verdict=_one_of("yes", "no", "unknown")))
)
RATING = _object(**{"for": _list(_TEXT), "against": _list(_TEXT)}, reason=_TEXT, score={"type": "NUMBER"})
SENTENCES = _object(
    sentences=_list(
        _object(
            sentence={"type": "INTEGER"},
            reason=_TEXT,
            supporting=_TEXT_OR_NULL,
            contradicting=_TEXT_OR_NULL,
            label=_one_of("supported", "unsupported", "contradictory", "disputed", "not_applicable"),
        )
    )
)
SIMULATED_USER = _object(
    criteria=_list(_object(name=_TEXT, reason=_TEXT, passes=_YES_OR_NO)), reason=_TEXT, is_valid=_YES_OR_NO
)
