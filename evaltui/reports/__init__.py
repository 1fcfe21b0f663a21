"""What a run is told as, outside the workbench."""
