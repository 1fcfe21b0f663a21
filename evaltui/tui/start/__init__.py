"""The choice of an agent, and the start pane of an agent without cases."""
