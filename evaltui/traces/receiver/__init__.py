"""Takes spans over OTLP/HTTP: requests to a spool on disk, and from there to sessions as they complete."""
