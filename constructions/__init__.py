"""Constructions: a folder for each paper, what all share, and the `construct` command."""
