"""The files of a checkpoint as the kernel reads them: config.json, model.safetensors, circuit.json, construction.json.

Whatever the kernel does not know is refused: another class, another entry of the config, a tensor too many, an entry
of the promise, of the task, of a stream that is read or an operation's attribute. Other entries at the top of
circuit.json and construction.json say nothing of the model, and streams behind the output are not computed: neither is
read. The text around the model (tokenizer, generation) is `verify/checker/text.py`'s; the kernel
speaks of ids, and of letters by their names in circuit.json.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from verify.kernel.floats import FLOAT32, FORMATS, Format, Unproved, exponents
from verify.kernel.language import Language, parse

MOST_BYTES, MOST_WEIGHTS = 1 << 25, 1 << 30  # bytes of a JSON file, and of model.safetensors
# Of a size. Of a chunk the library's scan holds the square for every head and column; a tap looks so far back.
MOST = {"num_hidden_layers": 1 << 12, "chunk_size": 1 << 8, "conv_kernel": 1 << 12}
_FIXED = {"hidden_act": "silu", "pad_vocab_size_multiple": 1, "residual_in_fp32": True, "tie_word_embeddings": False}
_FIXED |= {"use_bias": False, "use_conv_bias": True}
_CLASSES = {"mamba": "MambaForCausalLM", "mamba2": "Mamba2ForCausalLM"}
_SIZES = ("conv_kernel", "hidden_size", "intermediate_size", "num_hidden_layers", "state_size", "vocab_size", "expand")
_OF_CLASS = {"mamba": ("time_step_rank",), "mamba2": ("chunk_size", "head_dim", "n_groups", "num_heads")}
# What no equation reads, and the types without which the library opens no model.
_IDLE: dict[str, tuple[type, ...]] = {"transformers_version": (str,), "use_cache": (bool,)}
_IDLE |= {"bos_token_id": (int, type(None)), "pad_token_id": (int, type(None)), "eos_token_id": (int, list, type(None))}
_PROMISE = {"language", "length", "description", "dtype", "stop", "level"}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """tensors: float64 arrays by name, of numbers of the format. task: the manifest's claim, None where it has none."""

    form: Format
    config: dict[str, Any]
    tensors: dict[str, np.ndarray]
    language: Language
    circuit: dict[str, Any]
    task: object

    @property
    def weights(self) -> int:
        """How many numbers the tensors have."""
        return sum(tensor.size for tensor in self.tensors.values())


def read(directory: Path) -> Checkpoint:
    """Unproved, in one sentence, where a file is not what the kernel knows."""
    try:
        if (directory / "adapter_config.json").exists():
            raise Unproved("adapter_config.json: transformers would add its weights to the model")
        manifest = read_json(directory / "construction.json")
        circuit, promise = read_json(directory / "circuit.json", exact=True), manifest["promise"]
        form = FORMATS[promise["dtype"]]
        config = check_config(read_json(directory / "config.json"), form)
        versions = manifest.get("format_version", 2), circuit["version"]
        if versions != (2, 1) or any(type(version) is not int for version in versions):
            raise Unproved("construction.json or circuit.json has a version that the kernel does not read")
        if set(promise) - _PROMISE or promise.get("level", "bit-exact") != "bit-exact":
            raise Unproved("the promise is not one of bit-exact answers")
        if any(circuit["promise"][name] != promise[name] for name in ("language", "length")):
            raise Unproved("circuit.json and construction.json promise different input languages")
        language = parse(promise)
        if type(circuit["alphabet"]) is not list or any(type(name) is not str for name in circuit["alphabet"]):
            raise Unproved("the alphabet of circuit.json is no list of names")
        if not language.tokens == len(circuit["alphabet"]) <= config["vocab_size"]:
            raise Unproved("language, alphabet and vocabulary have different sizes")
        if config.get("pad_token_id") is not None and config["pad_token_id"] < language.tokens:
            raise Unproved(f"the config pads with {config['pad_token_id']}, which is a letter")
        tensors = read_tensors(directory / "model.safetensors", shapes(config), form)
    except (KeyError, TypeError, AttributeError) as reason:
        raise Unproved(f"the files are not a checkpoint's: {reason!r:.200}") from reason
    except OSError as reason:
        raise Unproved(f"{reason.filename} cannot be read: {reason.strerror}") from reason
    return Checkpoint(form, config, tensors, language, circuit, manifest.get("task"))


def check_file(path: Path, most: int) -> None:
    """A file that ends, within the limit: a pipe never begins, a device has no end, and a sparse file may be huge."""
    if not path.is_file():
        raise Unproved(f"{path.name} is {'no plain file' if path.exists() else 'missing'}")
    if path.stat().st_size > most:
        raise Unproved(f"{path.name} has {path.stat().st_size} bytes, and the kernel reads at most {most}")


def read_json(path: Path, exact: bool = False) -> Any:
    """A JSON object without keys that stand twice, NaN, infinities or numbers such as 1e999.

    exact: nor decimals that float64 rounds, such as 0.1 or 9007199254740993.0.
    """
    check_file(path, MOST_BYTES)
    return parse_json(path.name, path.read_bytes(), exact)


def parse_json(name: str, raw: bytes, exact: bool = False) -> dict[str, Any]:
    def unique(pairs: list) -> dict:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    def finite(number: str) -> float:
        if not isfinite(float(number)):
            raise ValueError(f"{number[:20]} is no finite number")
        if exact and Decimal(number) != Decimal(float(number)):
            raise ValueError(f"float64 does not hold {number[:20]}; write it as a fraction")
        return float(number)

    def whole(number: str) -> int:
        if number == "-0":
            raise ValueError("-0 is no whole number for other readers")
        if 0 < sys.get_int_max_str_digits() < len(number.lstrip("-")):
            raise Unproved(f"{name} has an integer of more than {sys.get_int_max_str_digits():,} digits")
        return int(number)

    hooks: Any = {"object_pairs_hook": unique, "parse_int": whole, "parse_float": finite, "parse_constant": finite}
    try:
        content = json.loads(raw.decode("utf-8"), **hooks)
        if b"\\u" in raw:
            json.dumps(content, ensure_ascii=False).encode()  # an escape may be half a character, which is no text
    except RecursionError as reason:
        raise Unproved(f"{name} is nested too deeply") from reason
    except ValueError as reason:
        raise Unproved(f"{name} is not JSON: {reason!s:.200}") from reason
    if not isinstance(content, dict):
        raise Unproved(f"{name} is not JSON of one object")
    return content


def check_config(config: dict[str, Any], form: Format) -> dict[str, Any]:
    """A config of a class whose equations the kernel knows, every entry that changes them as they say."""
    kind = config.get("model_type")
    if kind not in _CLASSES or config.get("architectures") != [_CLASSES[kind]]:
        raise Unproved(f"the config has model_type {kind!r:.60}, and the kernel knows {', '.join(_CLASSES)}")
    sizes = (*_SIZES, *_OF_CLASS[kind])
    for key in sizes:
        if type(config.get(key)) is not int or not 1 <= config[key] <= MOST.get(key, 1 << 24):
            raise Unproved(f"the config has {key} = {config.get(key)!r:.60}, and {MOST.get(key, 1 << 24)} is the most")
    expected = _FIXED | {"dtype": form.name, "intermediate_size": config["expand"] * config["hidden_size"]}
    if kind == "mamba2":
        expected["num_heads"] = config["intermediate_size"] // config["head_dim"]
        if config["intermediate_size"] % (config["head_dim"] * config["n_groups"]):
            raise Unproved("the heads do not divide into the groups")
    for key, value in expected.items():
        if type(config.get(key)) is not type(value) or config[key] != value:
            raise Unproved(f"the config has {key} = {config.get(key)!r:.60}, expected {value!r}")
    epsilon = config.get("layer_norm_epsilon")
    if type(epsilon) is not float or not 2.0**FLOAT32.least <= epsilon < 1:
        raise Unproved(f"the config has layer_norm_epsilon = {epsilon!r:.60}")
    for key, kinds in _IDLE.items():
        found = config.get(key)
        if key in config and type(found) not in kinds or type(found) is list and any(type(i) is not int for i in found):
            raise Unproved(f"the config has {key} = {found!r:.60}")
    rank = config.get("time_step_rank", "auto")
    if rank != "auto" and type(rank) is not int:
        raise Unproved(f"the config has time_step_rank = {rank!r:.60}")
    known = {*sizes, *expected, *_IDLE, "architectures", "layer_norm_epsilon", "model_type", "time_step_rank"}
    known |= {"time_step_limit"} if kind == "mamba2" else set()
    if set(config) - known:
        raise Unproved(f"the config has an entry {min(set(config) - known)!r:.60} that the kernel does not know")
    return config


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor that the class has."""
    d, inner, n, taps = (config[k] for k in ("hidden_size", "intermediate_size", "state_size", "conv_kernel"))
    if config["model_type"] == "mamba":
        rank = config["time_step_rank"]
        mixer = {"in_proj.weight": (2 * inner, d), "conv1d.weight": (inner, 1, taps), "conv1d.bias": (inner,)}
        mixer |= {"x_proj.weight": (rank + 2 * n, inner), "dt_proj.weight": (inner, rank), "dt_proj.bias": (inner,)}
        mixer |= {"A_log": (inner, n), "D": (inner,), "out_proj.weight": (d, inner)}
    else:
        heads, conv = config["num_heads"], inner + 2 * config["n_groups"] * n
        mixer = {"in_proj.weight": (inner + conv + heads, d), "conv1d.weight": (conv, 1, taps), "conv1d.bias": (conv,)}
        mixer |= {"dt_bias": (heads,), "A_log": (heads,), "D": (heads,), "norm.weight": (inner,)}
        mixer |= {"out_proj.weight": (d, inner)}
    found = {"backbone.embeddings.weight": (config["vocab_size"], d), "backbone.norm_f.weight": (d,)}
    found["lm_head.weight"] = (config["vocab_size"], d)
    for i in range(config["num_hidden_layers"]):
        found[f"backbone.layers.{i}.norm.weight"] = (d,)
        found |= {f"backbone.layers.{i}.mixer.{name}": shape for name, shape in mixer.items()}
    return found


def read_tensors(path: Path, expected: dict[str, tuple[int, ...]], form: Format = FLOAT32) -> dict[str, np.ndarray]:
    """Every tensor. The format: 8 bytes length, a JSON header, raw bytes that the tensors fill without a gap."""
    check_file(path, MOST_WEIGHTS)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    if not 2 <= length <= min(len(raw) - 8, MOST_BYTES):
        raise Unproved(f"{path.name} has a header of {length} bytes in a file of {len(raw)}")
    header = parse_json(f"the header of {path.name}", raw[8 : 8 + length])
    told = header.pop("__metadata__", {})
    if type(told) is not dict or any(type(text) is not str for text in told.values()):
        raise Unproved(f"{path.name} has __metadata__ that are no texts by name")
    if set(header) != set(expected):
        raise Unproved(f"{path.name} lacks or adds the tensors {sorted(set(header) ^ set(expected))[:3]}")
    found, spans = {}, []
    for name, shape in expected.items():
        entry = header[name]
        first, last = entry["data_offsets"]
        sizes = [*entry["shape"], first, last]
        if entry["dtype"] != "F32" or tuple(entry["shape"]) != shape or any(type(i) is not int for i in sizes):
            raise Unproved(f"{name} is {entry['dtype']!r:.20} of {entry['shape']!r:.60}, expected 'F32' of {shape}")
        if not 0 <= first <= last <= len(raw) - 8 - length or last - first != 4 * prod(shape):
            raise Unproved(f"{name} does not lie within the file")
        spans.append((first, last))
        values = np.frombuffer(raw[8 + length + first : 8 + length + last], "<f4")
        found[name] = numbers(name, values, form).reshape(shape)
    spans.sort()
    if [0, *(last for _, last in spans)] != [*(first for first, _ in spans), len(raw) - 8 - length]:
        raise Unproved(f"the tensors of {path.name} overlap, or leave bytes between them")
    return found


def numbers(name: str, values: np.ndarray, form: Format) -> np.ndarray:
    """float32 numbers as float64, finite and of the format, without those that some backends read as 0."""
    held = values[values != 0].astype(np.float64)
    if not (np.abs(held) <= form.largest).all():
        raise Unproved(f"{name} has an entry that is not finite, or beyond what {form.name} holds")
    unit = exponents(held)
    if ((unit < form.least) | (np.abs(held) > np.ldexp(float(form.units), unit))).any():
        raise Unproved(f"{name} has an entry that {form.name} does not hold, or that is denormal")
    return values.astype(np.float64)
