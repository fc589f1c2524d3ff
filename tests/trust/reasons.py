"""Why mutants of the compiler stay that change weights and that nobody stops: by file of compiler/ and change."""

from __future__ import annotations

_BALANCED = "the form of balanced codes in one block is not taken, but the one in two blocks"
_RAMPS = "[x > 0] by the rising ramps in place of the falling ones, equal on integers"

REASONS_OF_MUTANTS: dict[tuple[str, str], str] = {
    ("lowering/ports.py", "True  →  False"): "states and D paths stand in blocks of their own",
    ("targets/mamba2/emit.py", "4  →  3"): "another size of heads among those that fit: the same numbers elsewhere",
    ("gadgets/product.py", "and  →  or"): "the factors are swapped: a·b = b·a",
    ("gadgets/product.py", "<  →  <="): "the factors are swapped: a·b = b·a",
    ("gadgets/product.py", "0  →  1"): "a second channel is printed where one would do; it adds 0",
    ("lowering/fitter.py", "<  →  <="): "what is never negative is carried by two rectifiers; the second is 0",
    ("passes/fit_ports.py", "reasons.append((stream, str(error)))  →  pass"):
        "a latch for S4D is printed as a Mamba, right but no S4D; since then blocks are held to their target, and it is"
        " refused",
    ("context.py", "False  →  True"):
        "keys, too, are 0 where nothing is written, as direct sums want it: the values are",
    ("passes/represent/rectifiers.py",
     "x.width == 1 and rising_count(affine_form(x), domains)  →  False"): _RAMPS,
    ("passes/fold_masks.py", "1  →  0"): "fewer masks are folded",
    ("passes/fold_masks.py", "0  →  1"): "fewer masks are folded",
    ("passes/fold_masks.py", "==  →  !="): "fewer masks are folded",
    ("passes/logic.py", "False  →  True"): "no mask is folded",
    ("passes/represent/stored.py", "*  →  /"): "signed values are stored as pairs, not as what they are made of",
    ("passes/represent/stored.py", ">=  →  >"): "signed values are stored as pairs, not as what they are made of",
    ("passes/represent/stored.py", "1  →  0"): "signed values are stored as pairs, not as bits",
    ("passes/represent/token_tables.py", "stream.operation.delay is not None  →  False"):
        "a mask of an earlier letter is not folded into that letter's table",
    ("passes/represent/thresholds.py", "/  →  *"): "more thresholds than the operand reaches, always 0 or always 1",
    ("passes/rings.py", "-  →  +"): "a far shift goes step by step where a ring of places would take fewer blocks",
    ("passes/schedule.py", "group is None  →  False"): "operations stand in other blocks",
    ("passes/schedule.py", "insort(own, free)  →  pass"): "operations stand in other blocks",
    ("passes/skip_path.py", "==  →  !="): "the skip path carries other terms of the same sum",
    ("passes/skip_path.py", "or  →  and"): "the constant is carried by a channel of its own",
    ("passes/skip_path.py", "not   →  "): "the constant is carried by another channel",
    ("targets/mamba2/signed_keys.py", "<  →  <="): _BALANCED,
    ("targets/mamba2/signed_keys.py", "==  →  !="): _BALANCED,
    ("targets/mamba2/signed_keys.py", "1  →  0"): _BALANCED,
    ("targets/mamba2/signed_keys.py", "2  →  1"): _BALANCED,
    ("targets/mamba2/signed_keys.py", "not   →  "): _BALANCED,
}  # fmt: skip
