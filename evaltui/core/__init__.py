"""What eval data means: pure functions and plain data, no file, no process, no screen."""
