"""One way in per agent framework. Imported only in the child process that runs the agent."""
