"""A kernel under test: read from a function, called on a case, and held to what a call must leave as it was."""
