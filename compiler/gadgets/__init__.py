"""The gadgets."""
