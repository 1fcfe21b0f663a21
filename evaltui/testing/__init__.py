"""The parts of the pytest plugin that are loaded once there is an eval set to test."""
