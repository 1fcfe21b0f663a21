"""The formats that spans are kept in, one module each; what holds spans is told by its content."""
