"""Our Mamba and Mamba2 against the classes of mamba_ssm: same names, bit for bit the same answers on lattice data."""

import json

import pytest
import torch

from compiler.runtime import fake_triton, has_mamba_ssm, mamba_classes, own_modules
from compiler.runtime.real_modules import block_classes
from tests.command_lines import PROGRAM
from tests.constructions.test_construct import run
from tests.fresh import fresh
from tests.runtime.lattice import lattice_block, one_hot_inputs

KINDS = [
    ("Mamba", {"d_state": 4}),
    ("Mamba", {"d_state": 3, "d_conv": 2, "expand": 1.5, "dt_rank": 5, "bias": True}),
    ("Mamba2", {"d_state": 4, "headdim": 8, "rmsnorm": False}),
    ("Mamba2", {"d_state": 4, "headdim": 4, "ngroups": 2, "chunk_size": 4}),
    ("Mamba2", {"d_state": 4, "headdim": 8, "bias": True, "conv_bias": False, "norm_before_gate": True}),
]
LATTICE = [
    ("Mamba", {"d_state": 4}),
    ("Mamba2", {"d_state": 4, "headdim": 8, "rmsnorm": False}),
    ("Mamba2", {"d_state": 4, "headdim": 4, "ngroups": 2, "chunk_size": 4, "rmsnorm": False}),
]
needs_real = pytest.mark.skipif(not has_mamba_ssm(), reason="needs mamba_ssm")


def pair(name, options, lattice=True):
    real = getattr(mamba_classes(), name)(16, **options)
    real = lattice_block(real) if lattice else real
    ours = getattr(own_modules, name)(16, **options)
    ours.load_state_dict(real.state_dict())
    return real.eval(), ours.eval()


@needs_real
@pytest.mark.parametrize(("name", "options"), KINDS)
def test_the_state_dict_has_the_same_names_shapes_and_types(name, options):
    real, ours = pair(name, options, lattice=False)
    described = lambda block: {n: (t.shape, t.dtype) for n, t in block.state_dict().items()}
    assert described(ours) == described(real)
    marks = lambda block: {n for n, p in block.named_parameters() if hasattr(p, "_no_weight_decay")}
    assert marks(ours) == marks(real)


@needs_real
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("name", "options"), LATTICE)
def test_lattice_data_give_the_same_bits(name, options, dtype):
    real, ours = (_cast(block, dtype) for block in pair(name, options))
    u = one_hot_inputs(3, 20, 16).to(dtype)
    with torch.no_grad():
        assert real(u).abs().max() > 0
        assert torch.equal(ours(u), real(u))


def _cast(block, dtype):
    """The block in the dtype, with A_log and D in float32 as the kernels require."""
    kept = {n: p.data for n, p in block.named_parameters() if n in ("A_log", "D")}
    block.to(dtype)
    for n, p in block.named_parameters():
        p.data = kept.get(n, p.data)
    return block


@needs_real
@pytest.mark.parametrize(("name", "options"), KINDS)
def test_random_weights_give_the_same_answers_whole_and_step_by_step(name, options):
    torch.manual_seed(0)
    real, ours = pair(name, options, lattice=False)
    u = torch.randn(2, 11, 16)
    with torch.no_grad():
        assert (ours(u) - real(u)).abs().max() < 2e-6
        if name == "Mamba":
            caches = [(torch.zeros(2, ours.d_inner, ours.d_conv), torch.zeros(2, ours.d_inner, ours.d_state))] * 2
        else:
            caches = [real.allocate_inference_cache(2, 11)] * 2
        for t in range(u.shape[1]):
            given = [[c.clone() for c in cache] for cache in caches]
            (a, *first), (b, *second) = (m.step(u[:, t : t + 1], *c) for m, c in zip((real, ours), given))
            caches = [first, second]
            assert (a - b).abs().max() < 2e-6
            assert all((x - y).abs().max() < 2e-6 for x, y in zip(first, second))


def test_a_head_size_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="headdim is 5"):
        own_modules.Mamba2(16, headdim=5)


def test_blocks_are_ours_only_where_mamba_ssm_is_missing(monkeypatch):
    if has_mamba_ssm():
        assert block_classes()["mamba"] is mamba_classes().Mamba
    monkeypatch.setattr(fake_triton, "is_missing", lambda name: name == "mamba_ssm")
    assert block_classes() == {"mamba": own_modules.Mamba, "mamba2": own_modules.Mamba2}


@needs_real
@pytest.mark.parametrize("name", ["Mamba", "Mamba2"])
def test_every_attribute_of_ours_has_the_value_that_it_has_there(name):
    options = {"d_state": 4, "layer_idx": 3} | ({"headdim": 8} if name == "Mamba2" else {})
    real, ours = pair(name, options, lattice=False)
    plain = {n: v for n, v in vars(ours).items() if not n.startswith("_") and n != "training"}
    assert plain.items() <= vars(real).items()
    assert plain.keys() >= {"d_model", "d_state", "d_conv", "expand", "d_inner", "activation", "layer_idx"}


# A machine without mamba_ssm: no import of it succeeds, and importlib does not find it either.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mamba_ssm", "causal_conv1d", "triton"):
            raise ModuleNotFoundError(name)

import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.startswith("mamba_ssm") else found(name, package)
sys.meta_path.insert(0, Missing())
"""


def without_mamba_ssm(folder, *lines):
    """(exit code, output, errors) of each command line, run one after the other in a process without mamba_ssm."""
    done = fresh("-c", WITHOUT + PROGRAM, json.dumps(lines), cwd=folder)
    assert done.returncode == 0, done.stderr
    return [said for *said, _ in json.loads(done.stdout)]


CONSTRUCTIONS = {
    "mqar": (("mqar", "--kappa", "3", "--vocab", "6", "--samples", "20"), "k0 v1 k0"),
    "keep-nth": (("keep-nth", "--arch", "mamba2", "--samples", "20"), "v1 v2 v3"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """(the folder, what was said of each construction), all in one process."""
    folder = tmp_path_factory.mktemp("without")
    lines = [
        line
        for name, (command, text) in CONSTRUCTIONS.items()
        for line in (
            (*command, "--out", name, "--json"),
            ("verify", name, "--samples", "20"),
            ("plot", name, "--input", text),
            ("verify", name, "--runtime", "mamba-ssm"),
        )
    ]
    ended = without_mamba_ssm(folder, *lines)
    return folder, {name: ended[4 * i : 4 * i + 4] for i, name in enumerate(CONSTRUCTIONS)}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_a_checkpoint_is_built_verified_and_drawn_without_mamba_ssm(name, told, tmp_path):
    folder, ended = told
    built, verified, drawn, refused = ended[name]
    assert built[0] == verified[0] == drawn[0] == 0, (built, verified, drawn)
    report = json.loads(built[1])
    assert "not installed" in report["runtime"] and report["verification"]["bit_exact"]
    assert refused[0] == 2 and "construct install-mamba" in refused[2]
    assert len(refused[2].strip().splitlines()) == 1
    if has_mamba_ssm():  # and the bytes are those that are made with it
        assert run(*CONSTRUCTIONS[name][0], "--out", str(tmp_path / "real"), "--json") == 0
        for path in (folder / name).iterdir():
            assert path.read_bytes() == (tmp_path / "real" / path.name).read_bytes(), path.name
