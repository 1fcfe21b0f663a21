"""JSON Schemas of users' files, for editors and other programs."""
