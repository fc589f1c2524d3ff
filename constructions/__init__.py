"""Constructions: one file per family of theorems, and the `construct` command."""
