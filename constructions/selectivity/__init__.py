"""Paper A: input selectivity."""
