"""docs/graft.md: its programs run as printed on a trained host, and do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch

from compiler.graft.measure import host_difference
from constructions.experiments import graft as experiment
from tests.graft.hosts import counter
from tests.graft.test_trainable import compiled

PAGE = (Path(__file__).parents[2] / "docs" / "graft.md").read_text("utf-8")


def test_the_programs_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = experiment.corpus()
    host = experiment.host(0)
    list(experiment.train(host, "host", 0, text, 2, lambda steps: None))
    host.eval().save_pretrained("host")
    first, *others = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len([line for line in first.splitlines() if line.strip()]) == 10

    scope: dict = {}
    exec(compile(first, "graft.md", "exec"), scope)  # the page's own text
    ids = torch.from_numpy(np.stack([text[k : k + 60] for k in range(0, 600, 60)]))
    difference = host_difference(host, scope["grafted"], ids)
    assert difference.equal and difference.nats_before == difference.nats_after
    letters = scope["grafted"].ids
    prompt = torch.tensor([[int(text[0]), *(letters[letter] for letter in "abca")]])
    written = scope["model"].generate(prompt, max_new_tokens=4, do_sample=False)
    assert written[0, -4:].tolist() == [letters[letter] for letter in "bcab"]

    scope |= {"host": host, "another": counter(), "torch": torch}
    for program in others:
        if "trainable(model" in program:
            scope["model"] = compiled()
        exec(compile(program, "graft.md", "exec"), scope)
    with torch.no_grad():
        assert torch.equal(scope["joined"](ids).logits, host(ids).logits)
    assert scope["both"].name == "induction+count"
    assert all(isinstance(p, torch.nn.Parameter) for p in scope["model"].parameters())
