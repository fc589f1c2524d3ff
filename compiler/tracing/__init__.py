"""See and change what a compiled model computes, by the names of its circuit.

`model` is a loaded language model with `trace`, `patch` and `ablate`. `variables` says where each stream of the circuit
stands; `decoding` turns its numbers into letters and back; `intervention` sets variables, in the circuit and in the
lanes; `forward` runs the real modules under such an intervention; `trace` is what comes out; `compared` holds it
against the circuit, and so does `trial`, before a variable is set for the first time.
"""
