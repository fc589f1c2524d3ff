"""Constructions: folders by paper (B has two), what all share, and the `construct` command."""
