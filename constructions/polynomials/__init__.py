"""Paper C: polynomials."""
