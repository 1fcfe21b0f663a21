"""What can be edited in a case, row by row, with what can be added at each row."""
