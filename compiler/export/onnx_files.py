"""The ONNX graphs as files: inputs, outputs, and tensors that lie in a safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnx import TensorProto, helper

from compiler.export.onnx_graph import OPSET, Nodes, initializers, model_nodes, state_shapes

IR_VERSION = 8  # the first with opset 17
_BATCH = "batch"


def graph_bytes(config: Mapping[str, Any], weights: Path, stateful: bool, told: str) -> bytes:
    """A model whose tensors lie in the file `weights`, which is to stand beside it; told: the record, as JSON."""
    nodes = Nodes()
    shapes = state_shapes(config)
    names = [f"{part}.{i // 2 + 1}" for i, part in enumerate(("window", "memory") * (len(shapes) // 2))]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [_BATCH, "length"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [_BATCH, "length", config["vocab_size"]])]
    if stateful:
        states = names
        inputs += [_state(name, shape) for name, shape in zip(names, shapes, strict=True)]
    else:
        batch = nodes("Shape", "input_ids", start=0, end=1)
        states = [_zeros(nodes, batch, shape) for shape in shapes]
    logits, after = model_nodes(config, nodes, "input_ids", states)
    results = {"logits": logits} | ({f"new_{name}": value for name, value in zip(names, after)} if stateful else {})
    for name, value in results.items():
        nodes.nodes.append(helper.make_node("Identity", [value], [name]))
    if stateful:
        outputs += [_state(f"new_{name}", shape) for name, shape in zip(names, shapes, strict=True)]
    tensors = initializers(nodes.constants) + stored_tensors(weights)
    graph = helper.make_graph(nodes.nodes, "step" if stateful else "model", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    model.producer_name = "mamba-constructions"
    entry = model.metadata_props.add()
    entry.key, entry.value = "construction.export", told
    return model.SerializeToString(deterministic=True)


def stored_tensors(weights: Path) -> list[TensorProto]:
    """The tensors of a safetensors file as ONNX's external data: name, shape and place of each."""
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    found = []
    for name, entry in sorted(header.items()):
        if name == "__metadata__":
            continue
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=entry["shape"])
        tensor.data_location = TensorProto.EXTERNAL
        start, end = entry["data_offsets"]
        for key, value in (("location", weights.name), ("offset", 8 + length + start), ("length", end - start)):
            tensor.external_data.add(key=key, value=str(value))
        found.append(tensor)
    return found


def _state(name: str, shape: tuple[int, ...]) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [_BATCH, *shape])


def _zeros(nodes: Nodes, batch: str, shape: tuple[int, ...]) -> str:
    """A state before the first token: (batch, *shape)."""
    whole = nodes("Concat", batch, nodes.ints(*shape), axis=0)
    return nodes("ConstantOfShape", whole, value=helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0]))
