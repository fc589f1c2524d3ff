"""Paper B, Theorem 1 and Lemmas 1–5: what a block does to real numbers, with errors measured against proved bounds."""
