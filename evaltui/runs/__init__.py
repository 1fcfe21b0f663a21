"""The run service: runs are selected, executed, kept, resumed and opened again here."""
