"""The same function in another basis: `steps` change it exactly, `draw` chooses them, `directory` writes what comes out.

What each step rests on stands in docs/exactness.md (E16).
"""
