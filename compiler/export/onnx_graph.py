"""The computation of a Mamba or Mamba-2 language model as ONNX nodes, for any batch and any length.

Written by hand, not traced: time runs in a `Scan`, so that no length is built in. What the circuits rely on is spelled
out of elementary operators, because a runtime's own Sigmoid or Softplus need not be 0 at −104 or the identity at 20.1
(docs/exactness.md, E2 and E4): silu and softplus take their limits there by `Where`, and exp is 0 below its last float.

Shapes: B batch, T length, E channels of d_inner, C channels of the convolution, K its taps, N columns, H heads of P
channels in G groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from compiler.exactness.levels import SAFE_NEGATIVE
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, mixer_prefix, norm_name

OPSET = 17
_IDENTITY = 20.0  # silu and softplus are the identity above this
_FLOAT = TensorProto.FLOAT

Values = Sequence[str]


class Nodes:
    """Nodes and constants of a graph, each value under a name of its own."""

    def __init__(self, prefix: str = ""):
        self.prefix = prefix
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.count = 0

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the one output of a new node."""
        return self.several(operator, 1, *inputs, **attributes)[0]

    def several(self, operator: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"{self.prefix}{operator.lower()}.{self.count}.{i}" for i in range(outputs)]
        self.count += 1
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def number(self, value: float) -> str:
        """A float32 constant."""
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        """A vector of int64, such as axes or a shape."""
        return self.constant(np.array(values, dtype=np.int64))

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        name = f"{self.prefix}constant.{array.dtype}.{'_'.join(map(str, array.reshape(-1).tolist()))}.{array.ndim}"
        self.constants[name] = array
        return name

    def product(self, x: str, weight: str) -> str:
        """x · weightᵀ over the last axis."""
        return self("MatMul", x, self("Transpose", weight, perm=[1, 0]))

    def exp(self, x: str) -> str:
        """exp, and 0 up to −104."""
        return self("Where", self("LessOrEqual", x, self.number(SAFE_NEGATIVE)), self.number(0), self("Exp", x))

    def silu(self, x: str) -> str:
        """x / (1 + exp(−x)), 0 up to −104 and x above 20."""
        sigmoid = self("Add", self.number(1), self("Exp", self("Neg", x)))
        small = self(
            "Where", self("LessOrEqual", x, self.number(SAFE_NEGATIVE)), self.number(0), self("Div", x, sigmoid)
        )
        return self("Where", self("Greater", x, self.number(_IDENTITY)), x, small)

    def softplus(self, x: str) -> str:
        """log(1 + y) of y = exp(x), with y / ((1 + y) − 1) for what the sum rounds away; x above 20."""
        y = self.exp(x)
        sum_ = self("Add", self.number(1), y)
        rounded = self("Sub", sum_, self.number(1))
        none = self("Equal", rounded, self.number(0))
        safe = self("Where", none, self.number(1), rounded)
        small = self("Where", none, y, self("Mul", self("Log", sum_), self("Div", y, safe)))
        return self("Where", self("Greater", x, self.number(_IDENTITY)), x, small)

    def norm(self, x: str, weight: str, epsilon: float) -> str:
        """RMSNorm over the last axis."""
        mean = self("ReduceMean", self("Mul", x, x), axes=[-1], keepdims=1)
        root = self("Sqrt", self("Add", mean, self.number(epsilon)))
        return self("Mul", self("Mul", x, self("Div", self.number(1), root)), weight)

    def split(self, x: str, sizes: Sequence[int], axis: int = -1) -> list[str]:
        return self.several("Split", len(sizes), x, self.ints(*sizes), axis=axis)


def model_nodes(config: Mapping[str, Any], nodes: Nodes, ids: str, states: Values) -> tuple[str, list[str]]:
    """(logits (B, T, V), states after the last token); states: (window, memory) of each block in order."""
    stream = nodes("Gather", EMBEDDING, ids, axis=0)
    mixer = _mamba2 if config["model_type"] == "mamba2" else _mamba
    epsilon, after = config["layer_norm_epsilon"], []
    for i in range(config["num_hidden_layers"]):
        normed = nodes.norm(stream, norm_name(i), epsilon)
        out, *kept = mixer(config, nodes, mixer_prefix(i), normed, *states[2 * i : 2 * i + 2])
        stream = nodes("Add", stream, out)
        after += kept
    return nodes.product(nodes.norm(stream, FINAL_NORM, epsilon), HEAD), after


def state_shapes(config: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Without the batch: (C, K − 1) of the window and that of the memory, for each block."""
    inner, columns = config["intermediate_size"], config["state_size"]
    if config["model_type"] == "mamba2":
        convolved = inner + 2 * config["n_groups"] * columns
        memory: tuple[int, ...] = (config["num_heads"], config["head_dim"], columns)
    else:
        convolved, memory = inner, (inner, columns)
    return [(convolved, config["conv_kernel"] - 1), memory] * config["num_hidden_layers"]


def _mamba(config: Mapping[str, Any], n: Nodes, prefix: str, u: str, window: str, memory: str) -> list[str]:
    inner, columns, rank = config["intermediate_size"], config["state_size"], config["time_step_rank"]
    x, z = n.split(n.product(u, f"{prefix}in_proj.weight"), [inner, inner])
    x, window = _convolved(n, prefix, x, window, inner)
    delta, b, c = n.split(n.product(x, f"{prefix}x_proj.weight"), [rank, columns, columns])
    delta = n("Add", n.product(delta, f"{prefix}dt_proj.weight"), f"{prefix}dt_proj.bias")
    a = n("Neg", n.exp(f"{prefix}A_log"))  # (E, N)
    body = _scan_body(prefix, a, (inner, columns), (inner,), (inner,), (columns,), per_head=False)
    memory, y = _scan(n, body, memory, [n.softplus(delta), x, b, c])
    y = n("Add", y, n("Mul", x, f"{prefix}D"))
    return [n.product(n("Mul", y, n.silu(z)), f"{prefix}out_proj.weight"), window, memory]


def _mamba2(config: Mapping[str, Any], n: Nodes, prefix: str, u: str, window: str, memory: str) -> list[str]:
    inner, columns, groups = config["intermediate_size"], config["state_size"], config["n_groups"]
    heads, width = config["num_heads"], config["head_dim"]
    convolved = inner + 2 * groups * columns
    z, x, delta = n.split(n.product(u, f"{prefix}in_proj.weight"), [inner, convolved, heads])
    x, window = _convolved(n, prefix, x, window, convolved)
    x, b, c = n.split(x, [inner, groups * columns, groups * columns])
    x = n("Reshape", x, n.ints(0, 0, heads, width))
    b, c = (_of_heads(n, some, heads, groups, columns) for some in (b, c))
    delta = n.softplus(n("Add", delta, f"{prefix}dt_bias"))
    a = n("Neg", n.exp(f"{prefix}A_log"))  # (H)
    body = _scan_body(prefix, a, (heads, width, columns), (heads,), (heads, width), (heads, columns), per_head=True)
    memory, y = _scan(n, body, memory, [delta, x, b, c])
    y = n("Add", y, n("Mul", x, n("Unsqueeze", f"{prefix}D", n.ints(1))))
    gated = n("Mul", n("Reshape", y, n.ints(0, 0, inner)), n.silu(z))
    grouped = n("Reshape", gated, n.ints(0, 0, groups, inner // groups))
    weight = n("Reshape", f"{prefix}norm.weight", n.ints(groups, inner // groups))
    normed = n("Reshape", n.norm(grouped, weight, config["layer_norm_epsilon"]), n.ints(0, 0, inner))
    return [n.product(normed, f"{prefix}out_proj.weight"), window, memory]


def _of_heads(n: Nodes, x: str, heads: int, groups: int, columns: int) -> str:
    """(B, T, G·N) to (B, T, H, N): each group stands for heads / groups heads after each other."""
    x = n("Reshape", x, n.ints(0, 0, groups, 1, columns))
    x = n("Expand", x, n.ints(1, 1, groups, heads // groups, columns))
    return n("Reshape", x, n.ints(0, 0, heads, columns))


def _convolved(n: Nodes, prefix: str, x: str, window: str, channels: int) -> tuple[str, str]:
    """(silu of the causal convolution (B, T, C), the last K − 1 inputs): the window stands before the first input."""
    whole = n("Concat", window, n("Transpose", x, perm=[0, 2, 1]), axis=2)
    length, taps = n("Shape", window, start=2, end=3), n("Shape", whole, start=2, end=3)
    kept = n("Slice", whole, n("Sub", taps, length), taps, n.ints(2))
    found = n("Conv", whole, f"{prefix}conv1d.weight", f"{prefix}conv1d.bias", group=channels)
    return n.silu(n("Transpose", found, perm=[0, 2, 1])), kept


def _scan(n: Nodes, body: GraphProto, memory: str, over_time: list[str]) -> tuple[str, str]:
    """(state after the last position, y at all): the body at each position of Δ, x, B and C (B, T, …)."""
    along = {"num_scan_inputs": len(over_time), "scan_input_axes": [1] * len(over_time), "scan_output_axes": [1]}
    after, y = n.several("Scan", 2, memory, *over_time, body=body, **along)
    return after, y


def _scan_body(
    prefix: str,
    a: str,
    state: tuple[int, ...],
    delta: tuple[int, ...],
    x: tuple[int, ...],
    port: tuple[int, ...],
    per_head: bool,
) -> GraphProto:
    """h ← exp(Δ·A)·h + (Δ·x)·B and y = h·C at one position; shapes without the batch. a: A, of the graph around."""
    n = Nodes(f"{prefix}scan.")
    if per_head:  # Δ (B, H), A (H), x (B, H, P), B and C (B, H, N)
        decay = n("Unsqueeze", n.exp(n("Mul", "delta", a)), n.ints(2, 3))
        step = n("Mul", n("Unsqueeze", "delta", n.ints(2)), "x")
        b, c = (n("Unsqueeze", name, n.ints(2)) for name in ("b", "c"))
    else:  # Δ and x (B, E), A (E, N), B and C (B, N)
        decay = n.exp(n("Mul", n("Unsqueeze", "delta", n.ints(2)), a))
        step = n("Mul", "delta", "x")
        b, c = (n("Unsqueeze", name, n.ints(1)) for name in ("b", "c"))
    written = n("Mul", n("Unsqueeze", step, n.ints(len(x) + 1)), b)
    after = n("Add", n("Mul", decay, "h"), written)
    y = n("ReduceSum", n("Mul", after, c), n.ints(-1), keepdims=0)
    shapes = {"h": state, "delta": delta, "x": x, "b": port, "c": port}
    inputs = [_value(name, shape) for name, shape in shapes.items()]
    outputs = [_value(after, state), _value(y, x)]
    return helper.make_graph(n.nodes, "position", inputs, outputs, initializers(n.constants))


def _value(name: str, shape: tuple[int, ...]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, _FLOAT, ["batch", *shape])


def initializers(constants: Mapping[str, np.ndarray]) -> list[TensorProto]:
    return [numpy_helper.from_array(array, name) for name, array in constants.items()]
