"""Idealised mixers that run over any ring."""
