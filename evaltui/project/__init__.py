"""Files of an agent's folder: searching, reading and their problems."""
