"""Draw the pictures of the pages on paper A: `python examples/figures.py docs/figures` (default: figures, here)."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from compiler import Alphabet, Circuit, InputLanguage, Tokens, count, readout_integer
from compiler.artifact.package import bare
from compiler.driver import compile
from compiler.runtime import mamba_classes
from compiler.targets.s4d.mixer import S4DMixer
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import named_table
from constructions.construction import Construction
from constructions.pictures.model_history import model_history
from constructions.pictures.plots import draw_bases, draw_rates, draw_sensitivity
from constructions.pictures.state_picture import draw_state
from constructions.selectivity.approximation_rate import rate_report
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from verify.attention_sensitivity import attention_sensitivity
from verify.sensitivity import sensitivity

STATES = {
    "automaton": (Automaton(table=table_json(named_table("ends-with-abb"))), "a b b a a b a b b b"),
    "induction-heads": (InductionHeads(vocab=4), "v1 v0 v2 v1 v3 v2 v1 v3"),
    "induction-heads-delta-t": (InductionHeads(vocab=4, arch="mamba-delta-t"), "v1 v0 v2 v1 v3 v2 v1 v3"),
    "keep-nth": (KeepNth(n=3, vocab=6), "v4 v1 v5 v0 v2 v2 v3 v0"),
    "mqar": (MQAR(kappa=3, vocab=4), "k1 v0 k0 v3 k2 v1 _ k0 v2 k1"),
}


def draw_states(folder: Path) -> None:
    """The models of the pages, and the circuit that the README builds."""
    compiled = compile(count_since())
    history = model_history(compiled, bare(compiled), "a c a a b a")
    draw_state(history, folder / "count-since-state.png", "count-since: the model over time")
    for name, (construction, text) in STATES.items():
        draw_state(history_of(construction, text), folder / f"{name}-state.png", f"{name}: the bare model over time")


def count_since() -> Circuit:
    """The README's own circuit."""
    letters = Alphabet.of("a", "b", "c", *(str(n) for n in range(9)))
    x = Tokens(letters)
    since = count(x.is_in("a"), reset=x.is_in("b"))
    answer = readout_integer(since, letters, {str(n): n for n in range(9)})
    language = InputLanguage.everything(letters, 8, ("a", "b", "c"))
    return Circuit("count-since", answer, language)


def history_of(construction: Construction, text: str):
    """What the bare model holds and writes."""
    compiled = compile(construction.circuit(), construction.target)
    return model_history(compiled, bare(compiled), text)


def sensitivities(length: int = 64) -> dict:
    """A random Mamba layer, a random S4D layer, attention over random numbers, and the built KEEP 3rd."""
    torch.manual_seed(0)
    u = torch.randn(length, 8)
    random = mamba_classes().Mamba(8, d_state=4)
    fading = S4DMixer(8, 16, 4)
    torch.nn.init.constant_(fading.dt_bias, -1.0)
    compiled = compile(KeepNth(n=3, vocab=6).circuit())
    stack = bare(compiled)
    with torch.no_grad():
        _, streams = stack(torch.randint(6, (1, length)), return_stream=True)
    kept = next(c for c, name in enumerate(compiled.blocks[1].channels.names) if name.startswith("kept"))
    return {
        "Mamba, random": sensitivity(random, u, 1, 1),
        "S4D, random": sensitivity(fading, u, 1, 1),
        "KEEP 3rd, built": sensitivity(stack.blocks[1], streams[1][0], kept),
        "attention, random": attention_sensitivity(torch.randn(length), 0.5, 1.0),
    }


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw_states(folder)
    draw_bases(folder / "haar-bases.png")
    draw_rates(rate_report(["1/3", "0.7"], [0, 1, "1/2"]), folder / "approximation-rate.png")
    draw_sensitivity(sensitivities(), folder / "sensitivity.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "figures"))
