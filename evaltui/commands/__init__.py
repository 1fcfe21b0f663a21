"""What the command line can do without a screen, one module per command."""
