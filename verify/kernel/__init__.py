"""A small kernel for proofs of weights: it alone makes facts, and it searches for none (docs/proofs.md)."""
