"""The criteria of a set: what its `test_config.json` asks for, what it could ask for, and changing that."""
