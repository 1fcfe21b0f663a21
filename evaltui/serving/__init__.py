"""The workbench in a browser: who may in, a process in a terminal for each session, the page around it."""
