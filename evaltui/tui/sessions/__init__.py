"""Sessions that are received or imported."""
