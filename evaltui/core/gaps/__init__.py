"""Changes of recorded conversations that the cases of an eval set do not notice, and what no case covers."""
