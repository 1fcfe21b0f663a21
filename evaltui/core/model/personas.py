"""The names of the user personas that an eval case may refer to by name (google-adk 2.13)."""

PREBUILT_PERSONAS = ("EXPERT", "NOVICE", "EVALUATOR")
