"""The parts of the screen. Each draws what the workbench knows; none knows another."""
