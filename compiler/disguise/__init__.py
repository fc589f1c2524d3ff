"""The same function in another basis: `steps` change it exactly, `draw` chooses them, `directory` writes the result.

What each step rests on stands in docs/exactness.md (E18).
"""
