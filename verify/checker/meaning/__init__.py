"""These values are the scores of the circuit as written."""
