"""Every regular language: decided by its algebra, compiled, proved."""
