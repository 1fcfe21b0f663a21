"""Files in an agent directory: reading them, finding them, and saying what is wrong with them."""
