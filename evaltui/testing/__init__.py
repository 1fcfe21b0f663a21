"""What the pytest plugin is made of, once there is an eval set to be tested."""
