"""The gadgets: for each operation that a block computes, how it does so and why that is exact.

S is the scale of an x̂ port (a power of two, `analysis/scale.py`), so x̂ = S·v; every other constant is a
power of two too (`exactness/levels.py`), so each step multiplies by powers of two and adds lattice values:
nothing rounds.
"""
