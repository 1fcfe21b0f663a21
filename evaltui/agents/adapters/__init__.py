"""One way in per agent framework. Imported only in the process that runs the agent."""
