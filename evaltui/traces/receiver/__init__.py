"""Takes spans over OTLP/HTTP: requests to a spool on disk, and from there to sessions as they complete."""

OTLP_PORT = 4318
"""Where exporters send OTLP over HTTP to, unless they are told otherwise."""
