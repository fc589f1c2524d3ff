"""Kernels and a runtime of ours with injected bugs, one switch each: they show what the vectors see.

`catalogue` lists the bugs and the stage at which each must be caught; `table` tries them all.
"""
