"""Whole models: compiled circuits as checkpoints, their exact logits, and the modes in which runtimes are run."""
