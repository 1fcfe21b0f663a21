"""Results as rows that the screen, the console, HTML and Markdown paint."""
