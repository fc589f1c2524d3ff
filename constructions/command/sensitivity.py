"""`construct sensitivity`: Lemmas 1 and 2 on any layer: of a checkpoint, of a trained model, or drawn at random.

Blocks, channels and columns are counted as `construct inspect` lists them: blocks from 1, channels and columns from 0;
a channel of a checkpoint of ours also goes by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from compiler.artifact.files import CONFIG, MANIFEST
from compiler.artifact.json_files import read_json
from compiler.artifact.json_files import shown as quoted
from compiler.artifact.manifest import manifest_content
from compiler.language.arguments import counted
from constructions.command.display import console, quiet, say, working
from constructions.command.numbers import read_numbers
from constructions.command.options import LARGEST_SEED, Json, Plot
from constructions.command.outputs import picture_path
from constructions.command.reporting import strict_json

if TYPE_CHECKING:
    from torch import Tensor, nn

Kind = Literal["mamba", "mamba2", "s4d"]


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("sensitivity")(sensitivity)


def sensitivity(
    directory: Annotated[
        Path | None, typer.Argument(help="a checkpoint, or a Mamba or Mamba-2 model that transformers saved")
    ] = None,
    text: Annotated[
        str,
        typer.Option(
            "--input",
            help='tokens, such as "k0 v3 k0"; of a model over numbers "1 -2", or "x = 1,2 3,4; n = 0 1"; of a model '
            'that is not ours, ids of tokens: "17 4 98"',
        ),
    ] = "",
    block: Annotated[int | None, typer.Option(min=1, help="which block, from 1 on [default: the last]")] = None,
    channel: Annotated[str, typer.Option(help="which channel: its number from 0 on, or its name")] = "0",
    column: Annotated[int, typer.Option(min=0, help="which state column, from 0 on")] = 0,
    random: Annotated[
        Kind | None, typer.Option(help="no checkpoint: a layer as its library draws it, on a random input")
    ] = None,
    d_model: Annotated[int | None, typer.Option(min=1, max=4096, help="of a random layer [default: 16]")] = None,
    d_state: Annotated[int | None, typer.Option(min=1, max=1024, help="of a random layer [default: 4]")] = None,
    length: Annotated[
        int | None, typer.Option(min=1, max=4096, help="positions of a random input [default: 24]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="seed of a random layer and its input [default: 0]")
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Paper A, Lemmas 1 and 2: how much a state of any layer still feels an early input, by autograd and by formula."""
    if (directory is None) == (random is None):
        raise ValueError("one of DIR and --random is needed, and not both: what is the layer?")
    drawn = {"--d-model": d_model, "--d-state": d_state, "--length": length, "--seed": seed}
    if directory is not None:
        _check_unused(drawn, "a random layer, and --random is not given")
    else:
        _check_unused({"--input": text or None, "--block": block}, "a checkpoint, and --random draws one layer")
    if directory is not None and not text.strip():
        raise ValueError("--input holds no token; it says what the model reads.")
    if plot:
        picture_path(plot, "--plot")
    with working("sensitivity", quiet=as_json) as bars:
        from constructions.pictures.plots import draw_sensitivity
        from verify.sensitivity import sensitivity as of_layer

        if random is not None:
            sizes = (d_model or 16, d_state or 4, length or 24)
            layer, u, where = *_random(random, *sizes, seed or 0), f"a random {random} layer"
            number, name = _number(channel), channel
        elif directory is not None and (directory / MANIFEST).is_file():
            layer, u, block = _own(directory, text, block)
            number, name = _channel(directory, block, channel)
            where = f"block {block}"
        else:
            layer, u, block = _foreign(directory, text, block)
            number, name, where = _number(channel), channel, f"block {block} of {directory}"
        result = of_layer(layer, u, number, column, bars("positions", len(u)))
        if plot:
            draw_sensitivity({f"{where}, channel {name}": result}, plot)
    _show(result.to_json(), as_json, f"{where}, channel {name}, column {column}")


def _check_unused(options: Mapping[str, Any], of: str) -> None:
    """ValueError where one of the options is given, which are of something else."""
    given = next(((name, value) for name, value in options.items() if value is not None), None)
    if given is not None:
        name, value = given
        raise ValueError(f"{name} {value} is of {of}; leave it out.")


def _show(told: dict, as_json: bool, title: str) -> None:
    if as_json:
        say(strict_json(told))
        return
    console.print(title)
    table = Table("t − j", "by autograd", "closed form")
    for k, (measured, predicted) in enumerate(zip(told["measured"], told["predicted"], strict=True)):
        table.add_row(str(k), f"{measured:.6g}", f"{predicted:.6g}")
    console.print(table)


def _random(kind: Kind, d_model: int, d_state: int, length: int, seed: int) -> tuple[nn.Module, Tensor]:
    """(a layer with start values of its library, normal inputs (length, d_model)), from the seed."""
    import torch

    from compiler.runtime.real_modules import block_classes
    from compiler.targets.s4d.mixer import S4DMixer
    from verify.sensitivity import check_work

    check_work(length, 2 * d_model)  # before the layer is drawn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "s4d":
            layer: nn.Module = S4DMixer(d_model, 2 * d_model, d_state)
            for parameter in layer.parameters():
                torch.nn.init.normal_(parameter, std=0.5)
        else:
            heads = {"headdim": 4 if d_model % 2 == 0 else 2} if kind == "mamba2" else {}
            layer = block_classes()[kind](d_model, d_state=d_state, expand=2, **heads)
        return layer, torch.randn(length, d_model)


def _own(directory: Path, text: str, block: int | None) -> tuple[nn.Module, Tensor, int]:
    """(layer, its input (T, d_model), which block) of a checkpoint of ours."""
    import torch

    from compiler.artifact.load import load
    from compiler.artifact.numeric import NumericStack
    from constructions.checkpoints.saved import same
    from verify.sensitivity import layer_input

    same(directory)  # whose channels it names
    loaded = load(directory)
    if isinstance(loaded, NumericStack):
        stack, first = loaded.stack, loaded.pack(read_numbers(text, loaded.inputs))
    else:
        stack, first = loaded, loaded.hidden(torch.tensor([_ids(text, list(loaded.tokens))]), 0)
    block = _block(block, len(stack.blocks))
    return stack.blocks[block - 1], layer_input(stack, first, block - 1), block


def _foreign(directory: Path, text: str, block: int | None) -> tuple[nn.Module, Tensor, int]:
    """The same of a model that transformers saved."""
    import torch

    from compiler.graft.hosts import check_runs
    from compiler.runtime.saved_model import saved_model

    if not (directory / CONFIG).is_file():
        raise ValueError(f"{directory} holds no config.json, so there is no model in it.")
    words = text.split()
    if not all(word.isdecimal() for word in words):
        raise ValueError(
            f"--input {text!r} must hold ids of tokens, such as 17 4 98, for {directory} is no model of ours."
        )
    quiet()
    config = read_json(directory / CONFIG)
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in ("mamba", "mamba2"):
        raise ValueError(f"{directory} holds a {quoted(kind)} model, and the lemmas are about mamba and mamba2.")
    model = saved_model(directory, "float32").eval()
    if model.config.hidden_act not in ("silu", "swish"):
        used = quoted(model.config.hidden_act)
        raise ValueError(f"{directory} has the activation {used}, and the lemmas are evaluated for silu.")
    check_runs(model)
    vocab = model.get_input_embeddings().weight.shape[0]
    ids = [int(word) for word in words]
    if max(ids) >= vocab:
        raise ValueError(f"--input has the id {max(ids)}, and the model has {vocab} tokens, from 0 on.")
    block = _block(block, len(model.backbone.layers))
    layer, seen = model.backbone.layers[block - 1].mixer, []
    layer.register_forward_pre_hook(lambda _, given, named: seen.append((*given, *named.values())[0]), with_kwargs=True)
    with torch.no_grad():
        model(torch.tensor([ids]))
    return layer, seen[0][0], block


def _block(block: int | None, count: int) -> int:
    if block is not None and block > count:
        raise ValueError(f"--block {block}: the model has {counted(count, 'block')}, numbered from 1.")
    return block or count


def _ids(text: str, tokens: list[str]) -> list[int]:
    """The ids of white-space separated tokens; ValueError for one that the checkpoint does not have."""
    number = {name: i for i, name in enumerate(tokens)}
    words = text.split()
    unknown = next((word for word in words if word not in number), None)
    if unknown is not None:
        raise ValueError(f"--input {text!r} must hold tokens of the checkpoint, and {unknown!r} is none.")
    return [number[word] for word in words]


def _number(channel: str) -> int:
    if not channel.isdecimal():
        raise ValueError(f"--channel {channel!r} must be a number: channels have names in checkpoints of ours only.")
    return int(channel)


def _channel(directory: Path, block: int, channel: str) -> tuple[int, str]:
    """(number, name) of a channel that is given as either; ValueError where the block has no channel of that name."""
    blocks = [each["channels"] for each in manifest_content(directory)["blocks"]]
    names = blocks[block - 1]
    if channel.isdecimal():
        number = int(channel)
        return number, names[number] if number < len(names) else channel
    found = [number for number, name in enumerate(names) if name == channel]
    if len(found) > 1:
        raise ValueError(
            f"--channel {channel!r}: block {block} has {len(found)} channels of this name, {_some(map(str, found))}; "
            "give the number."
        )
    if not found:
        others = [str(number) for number, of in enumerate(blocks, 1) if channel in of]
        there = f"--block {others[0]} has one" if others else f"its channels are {_some(dict.fromkeys(names))}"
        raise ValueError(f"--channel {channel!r}: block {block} has no channel of this name; {there}.")
    return found[0], channel


def _some(names: Iterable[str]) -> str:
    """The first eight."""
    told = list(names)
    return ", ".join(told[:8]) + (", …" if len(told) > 8 else "")
