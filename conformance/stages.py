"""The stages of a verdict, in the order in which they are asked: each rests on those before it."""

STAGES = {
    "recurrence": "sums without decay, over a few steps",
    "step": "Δ: its bias, its softplus, its limits",
    "decay": "exp(ΔA): nothing kept, or everything",
    "write": "β from 0 to 2: nothing is written, a place is written over, a vector is reflected",
    "skip and gate": "D u and the factor silu(z)",
    "window": "the taps of a convolution, its bias and activation",
    "norm": "the mean square, its epsilon, weight and gate",
    "batch": "rows of a batch do not meet",
    "groups": "channels and heads read the B, C or mean of their own group",
    "occupancy": "every channel, head and column counts, also where sizes are odd",
    "chunk": "long sequences: nothing is lost or invented where chunks meet",
    "last state": "what is handed back at the end",
    "initial state": "what is handed in at the start",
    "continuation": "a sequence in pieces is the sequence",
    "packed": "documents in one row do not meet",
    "precision": "each operand of 12 bits, states of 23 and steps of 24: no TF32, bfloat16 or float16 inside",
    "accuracy": "exp, softplus and silu along their curves, and a half-life, to a stated tolerance",
    "dtype": "bfloat16 operands, with a float32 state and one rounding",
    "crossing": "any three options together, at lengths around every usual chunk",
    "circuit": "operands of compiled circuits",
}
