"""The arguments of each operation by their names, and what is known of them."""

from __future__ import annotations

STATE_IN = {
    "selective_scan": "initial_state",
    "ssd": "initial_states",
    "conv": "initial_states",
    "delta_rule": "initial_state",
}
STATE_OUT = ("return_last_state", "return_final_states", "output_final_state")
OFFSETS, OFFSET_STATES = "cu_seqlens", "return_varlen_states"
SIGNATURES = {
    "selective_scan": "u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state, initial_state, "
    "seq_idx, cu_seqlens",
    "ssd": "x, dt, A, B, C, chunk_size, D, z, dt_bias, initial_states, seq_idx, cu_seqlens, dt_softplus, dt_limit, "
    "return_final_states, return_varlen_states",
    "step": "state, x, dt, A, B, C, D, z, dt_bias, dt_softplus",
    "conv": "x, weight, bias, seq_idx, initial_states, return_final_states, activation",
    "norm": "x, weight, z, eps, group_size, norm_before_gate",
    "delta_rule": "q, k, v, g, beta, chunk_size, initial_state, cu_seqlens, use_qk_l2norm_in_kernel, "
    "output_final_state",
}


def names_of(op: str) -> frozenset[str]:
    """The names of the arguments of an operation; of a step of any kind those of a step."""
    return frozenset(each.strip() for each in SIGNATURES.get(op, SIGNATURES["step"]).split(","))


CASES_OF = {
    "step": ("selective_scan", "ssd"),
    "channel step": ("selective_scan",),
    "head step": ("selective_scan", "ssd"),
}
"""Of steps, the operations whose cases they are run on."""
OPERATIONS = (*SIGNATURES, "channel step", "head step")
_OPTIONAL = (
    "D",
    "z",
    "delta_bias",
    "dt_bias",
    "bias",
    "initial_state",
    "initial_states",
    "seq_idx",
    OFFSETS,
    "activation",
)
_FLAGS = ("delta_softplus", "dt_softplus", "use_qk_l2norm_in_kernel", OFFSET_STATES, *STATE_OUT)
ABSENT = {**dict.fromkeys(_OPTIONAL), **dict.fromkeys(_FLAGS, False)}
"""What stands for an operand or an option that a case lacks, where a kernel has no default for it."""
_LEFT_OUT = frozenset({"chunk_size", "dt_limit", "group_size", "norm_before_gate"})


def needed_by(op: str) -> frozenset[str]:
    """The arguments without which no case of an operation is run."""
    return names_of(op) - ABSENT.keys() - _LEFT_OUT


OF_A_STEP = {
    "u": "x",
    "delta": "dt",
    "delta_bias": "dt_bias",
    **dict.fromkeys(STATE_IN.values(), "state"),
}
"""What a step calls the operands of the scans on whose cases it is run, where it has another name for one."""
TIME_AXIS = {"selective_scan": 2, "ssd": 1, "conv": 2, "norm": 1, "delta_rule": 1}


class Lacks(Exception):
    """The kernel has no argument for what a case needs; the message says which."""
