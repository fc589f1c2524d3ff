"""What is here, held against the vectors: our scans, mamba_ssm's references, transformers' PyTorch definitions."""

from __future__ import annotations

import sys
import types

import pytest
import torch

from compiler.runtime import has_mamba_ssm, ssd_scan
from compiler.runtime.selective_scan import selective_scan
from conformance import load, report, save
from conformance.cases import OPERATIONS, cases, drawn
from conformance.cases.companion import companion_cases
from conformance.faults.small import conv
from conformance.judge import judge, judged
from conformance.kernel.named import kernel_named
from conformance.kernel.signature import kernel
from conformance.models.build import build
from conformance.models.companion import companion
from conformance.models.judge import judge_model
from conformance.models.runtime import Unsupported
from conformance.report import try_kernel
from conformance.runtimes import NAMES, huggingface, known
from conformance.runtimes.earlier import EarlierModel, EarlierRuntime
from tests.spread import some

ROUNDING = {  # in between, where operands are bfloat16 or float16
    "mamba_selective_scan",
    "mamba2_chunk_scan",
    "mamba_selective_state_update",
    "mamba2_selective_state_update",
    "mamba2_gated_norm",
    "causal_conv1d_fn",
}


def findings(tested, full: bool = False):
    return [finding for each in try_kernel(tested, full) for finding in each.findings]


def test_ours_are_exact() -> None:
    for each in some(known("ours").kernels, 0.5):
        bad = [
            f for f in findings(each) if f.status == "failed" or (f.status == "failed to run" and f.stage != "packed")
        ]
        assert not bad, each.name


def test_the_paths_without_c_plus_plus_are_exact(monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[selective_scan.__module__], "is_native", lambda: False)
    assert {f.status for f in findings(kernel(selective_scan))} == {"passed", "skipped"}


def test_transformers_definitions_are_exact() -> None:
    for each in some(known("transformers").kernels, 0.5):
        bad = {f.stage for f in findings(each) if f.status == "failed"}
        assert bad == ({"one rounding", "rounding, crossed"} if each.name in ROUNDING else set()), each.name


@pytest.mark.skipif(not has_mamba_ssm(), reason="mamba_ssm is not installed")
def test_the_references_of_mamba_ssm() -> None:
    """Its chunked reference rounds the state to the operands' dtype where chunks meet, and three round in between."""
    kernels = known("mamba-ssm").kernels
    (chunked,) = (each for each in kernels if each.name == "ssd_chunk_scan_ref")
    tried = [*some([each for each in kernels if each is not chunked], 0.5), chunked]
    bad = [(each.name, f.stage, f.case) for each in tried for f in findings(each) if f.status == "failed"]
    cases = ("bfloat16, long state", "bfloat16, carried", "float16, carried")
    before = [("ssd_chunk_scan_ref", "dtype", case) for case in cases]
    assert [each for each in bad if each[1] not in ("one rounding", "rounding, crossed")] == before
    rounding = {"ssd_chunk_scan_ref", "selective_state_update_ref", "selective_scan_ref"} & {
        each.name for each in tried
    }
    for rounds in ("one rounding", "rounding, crossed"):
        assert {name for name, stage, _ in bad if stage == rounds} == rounding


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_the_kernels_of_mamba_ssm() -> None:
    for each in known("mamba-ssm-cuda").kernels:
        assert not [f for f in findings(each, full=True) if f.status == "failed"], each.name


def test_transformers_begins_anew_where_several_tokens_come(tmp_path) -> None:
    """Known in every release with a cache for Mamba-1: the suite must find it, where it is, and name it."""
    models = list(build(tmp_path, only=("count-since-mamba", "count-since-mamba2")))
    found = {case.name: list(judge_model(known("transformers").models, case)) for case in models}
    assert {f.status for f in found["count-since-mamba2"]} == {"passed"}
    bad = [f for f in found["count-since-mamba"] if f.status != "passed"]
    assert [f.stage for f in bad] == ["pieces"]
    assert bad[0].near == "at the cut border 1"
    assert bad[0].cause == "the state begins anew where several new tokens come"


def test_vectors_come_back_as_they_were(tmp_path) -> None:
    for op in OPERATIONS:
        made = cases(op)
        save(made, tmp_path / "first.safetensors")
        save(drawn(op), tmp_path / "second.safetensors")  # anew: `cases` are kept
        assert (tmp_path / "first.safetensors").read_bytes() == (tmp_path / "second.safetensors").read_bytes()
        for before, after in zip(made, load(tmp_path / "first.safetensors"), strict=True):
            assert (before.op, before.name, before.stage, before.borders) == (
                op,
                after.name,
                after.stage,
                after.borders,
            )
            assert before.options == after.options
            for group in ("inputs", "expected", "tolerance"):
                old, new = getattr(before, group), getattr(after, group)
                assert old.keys() == new.keys() and all(torch.equal(old[key], new[key]) for key in old)


def test_two_cases_of_one_name_are_not_kept_as_one(tmp_path) -> None:
    case = cases("conv")[0]
    with pytest.raises(ValueError, match=f"Two cases are called '{case.name}'"):
        save([case, case], tmp_path / "twice.safetensors")
    assert not (tmp_path / "twice.safetensors").exists()


def wrong_scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    """A scan as someone might write it, which forgets D."""
    return selective_scan(u, delta, A, B, C, None, z, delta_bias, delta_softplus)


@pytest.mark.quick
def test_a_cause_is_named() -> None:
    found = [f for f in judge(kernel(wrong_scan), cases("selective_scan")) if f.status == "failed"]
    assert found[0].stage == "skip and gate" and found[0].cause == "D u is left out"


def scan_with_d_twice(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    return selective_scan(u, delta, A, B, C, None if D is None else 2 * D, z, delta_bias, delta_softplus)


def test_a_term_that_is_added_twice_is_named() -> None:
    """On the exact cases and on random ones."""
    found = [f for tested in try_kernel(kernel(scan_with_d_twice)) for f in tested.findings if f.status == "failed"]
    assert {f.cause for f in found} == {"D u is added twice"} and len({f.case.startswith("random") for f in found}) == 2


@pytest.mark.parametrize("period", [37, 100])
def test_the_period_of_a_loss_is_read_from_the_first_wrong_position(period: int) -> None:
    def forgets(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        parts = [slice(start, start + period) for start in range(0, u.shape[2], period)]
        cut = lambda m, part: None if m is None else m[..., part]
        run = lambda part: selective_scan(
            *(u[..., part], delta[..., part], A, B[..., part], C[..., part], D, cut(z, part), delta_bias),
            delta_softplus=delta_softplus,
        )
        return torch.cat([run(part) for part in parts], dim=2)

    (long,) = (case for case in cases("selective_scan") if case.name == "300")
    (found,) = judge(kernel(forgets), [long])
    assert found.cause == f"the state is lost every {period} steps" and found.position == period


def bare_scan(u, delta, A, B, C):
    return selective_scan(u, delta, A, B, C)


def test_a_kernel_with_few_operands_may_be_good() -> None:
    exact, random = try_kernel(kernel(bare_scan))
    assert exact.good and random.good and {finding.status for finding in random.findings} == {"skipped"}
    assert not report.Tested("none", "kernel", random.findings).good


def narrow_scan(u, delta, A, B, C):
    return selective_scan(u, delta, A, B, C).half()


def test_a_result_of_a_narrower_dtype_is_wrong() -> None:
    found = next(iter(judge(kernel(narrow_scan), cases("selective_scan"))))
    assert found.status == "failed" and found.says == "y is torch.float16, but the operands are torch.float32."


def test_a_kernel_that_runs_where_its_operation_is_told_is_told_so() -> None:
    """It was said to be no kernel, and to need a wrapper."""
    plain = lambda x, weight, bias=None: conv(x, weight, bias)[0]
    any_name = lambda x, weight, other=1, **more: conv(x, weight)[0]
    for each in (plain, any_name):
        with pytest.raises(ValueError, match=r"may be conv by its arguments .*: say so by --operation conv, or"):
            kernel(each)
        told = judge(kernel(each, op="conv"), cases("conv"))
        assert {finding.status for finding in told} == {"passed", "skipped"}
    for no_kernel in (lambda x: x, lambda x, weight, other: x, lambda x, *more: x):
        with pytest.raises(ValueError, match="is no kernel"):
            kernel(no_kernel)


def test_what_cannot_be_tested_is_said() -> None:
    with pytest.raises(ValueError, match="must be module:function"):
        kernel_named("nothing")
    with pytest.raises(ValueError, match="cannot be imported"):
        kernel_named("compiler.runtime.selective_scan:nothing")
    with pytest.raises(ValueError, match=r"its arguments \(a, b\) are those of no operation"):
        kernel(lambda a, b: a)
    with pytest.raises(ValueError, match=r"^os:getcwd is no kernel: its arguments \(none\) are"):
        kernel_named("os:getcwd")
    with pytest.raises(ValueError, match="--operation 'x' is not known"):
        kernel_named("compiler.runtime.selective_scan:selective_scan", "x")
    with pytest.raises(ValueError, match="expected one of ours"):
        known("nothing")
    assert {"mamba-ssm-cuda", "transformers-cuda", "transformers-torch-cuda"} <= {*NAMES}
    if not torch.cuda.is_available():
        for name in (name for name in NAMES if name.endswith("-cuda")):
            with pytest.raises(ValueError, match=f"--runtime {name} cannot be run here: it needs a CUDA device"):
                known(name)


@pytest.mark.parametrize("name", ["transformers-bamba", "transformers-granitemoehybrid", "transformers-falcon-h1"])
def test_mixers_of_other_models(name: str, tmp_path) -> None:
    """Those that are right; the wrong ones are in tests/conformance/test_real_bugs.py."""
    other, model = build(tmp_path, only=("count-since-mamba", "count-since-mamba2"))
    assert {f.status for f in judge_model(known(name).models, model)} == {"passed"}
    skipped = next(iter(judge_model(known(name).models, other)))
    assert skipped.status == "skipped" and skipped.says == "its mixers are of Mamba-2"
    ordinary = companion(tmp_path, "mamba2")  # sees an epsilon that is not the checkpoint's
    assert next(iter(judge_model(known(name).models, ordinary))).status == "passed"


def by_offsets(bug: str = ""):
    """A scan of packed documents that takes their offsets, document by document."""

    def scan(x, dt, A, B, C, chunk_size, D=None, cu_seqlens=None, dt_softplus=False, return_final_states=False):
        ends = cu_seqlens.tolist() if cu_seqlens is not None else [0, x.shape[1]]
        pieces, states, state = [], [], None
        for start, stop in zip(ends, ends[1:], strict=False):
            part = {"x": x, "dt": dt, "B": B, "C": C}
            cut = {name: tensor[:, start:stop] for name, tensor in part.items()}
            given = state if bug == "state handed on" else None
            y, state = ssd_scan(
                **cut, A=A, chunk_size=chunk_size, D=D, dt_softplus=dt_softplus, initial_states=given,
                return_final_states=True,
            )  # fmt: skip
            pieces.append(y)
            states.append(states[-1] if bug == "state of the document before" and states else state)
        return torch.cat(pieces, 1), torch.cat(states)

    return scan


@pytest.mark.parametrize(
    ("bug", "wrong"), [("", ""), ("state handed on", "y"), ("state of the document before", "document_states")]
)
def test_documents_by_their_offsets(bug, wrong):
    single = [case for case in cases("ssd") if "seq_idx" in case.inputs and len(case.inputs["seq_idx"]) == 1]
    packed = [case for case in single if "initial_states" not in case.inputs]
    assert len(packed) >= 2
    for case in single:
        if case not in packed:
            assert judged(kernel(by_offsets(bug)), case).says == "it takes no initial_states"
    found = [judged(kernel(by_offsets(bug)), case) for case in packed]
    if not bug:
        assert all(finding.status == "passed" for finding in found), found
        states = kernel(by_offsets()).run(packed[0])["document_states"]
        assert len(states) == len(packed[0].borders["document"]) + 1
    else:
        assert all(finding.status == "failed" and wrong in finding.says for finding in found), found


def test_several_rows_are_no_offsets():
    case = next(case for case in companion_cases("ssd") if "seq_idx" in case.inputs)
    assert len(case.inputs["seq_idx"]) > 1
    assert judged(kernel(by_offsets()), case).status == "skipped"


def test_both_numbers_and_offsets_ask_for_the_states_of_documents():
    """As mamba_ssm's kernel does: (y, last state, states of the documents)."""

    def scan(
        x, dt, A, B, C, chunk_size, D=None, seq_idx=None, cu_seqlens=None, dt_softplus=False,
        return_final_states=False, return_varlen_states=False,
    ):  # fmt: skip
        y, states = by_offsets()(x, dt, A, B, C, chunk_size, D, cu_seqlens, dt_softplus)
        return (y, states[-1:], states) if return_varlen_states else (y, states[-1:])

    packed = [case for case in cases("ssd") if "document_states" in case.expected]
    packed = [case for case in packed if "initial_states" not in case.inputs]
    assert [judged(kernel(scan), case).status for case in packed] == ["passed"] * len(packed)


class ModelOfThatTime:
    """The call of transformers 4.57: what is continued must say its positions."""

    config = types.SimpleNamespace(num_hidden_layers=2)

    def __init__(self):
        self.positions = []

    def __call__(self, tokens, attention_mask=None, cache_params=None, cache_position=None, use_cache=False):
        self.positions.append(None if cache_position is None else cache_position.tolist())
        cache = cache_params or types.SimpleNamespace(ssm_states={0: torch.zeros(1), 1: torch.ones(1)})
        return types.SimpleNamespace(logits=tokens[..., None].float(), cache_params=cache)


def test_a_release_without_functions_of_its_own_runs_with_the_caches_of_its_time(monkeypatch) -> None:
    monkeypatch.setattr(huggingface, "has_definitions", lambda: False)
    found = known("transformers")
    assert isinstance(found.models, EarlierRuntime) and not found.kernels
    model = EarlierModel(ModelOfThatTime())
    _, cache = model.begin(torch.tensor([[1, 2]]))
    _, cache = model.extend(model.fork(cache), torch.tensor([[3, 4, 5]]))
    model.extend(cache, torch.tensor([[6]]))
    assert model.model.positions == [None, [2, 3, 4], [5]]
    assert [state.tolist() for state in model.states(cache)] == [[0], [1]]
    with pytest.raises(Unsupported, match="no selection of rows"):
        model.select(cache, torch.tensor([0]))


def test_a_step_without_a_state_is_bad_usage() -> None:
    """Its first argument would get the state: nothing of it was run, and each case "failed to run"."""

    def step(x, dt, A, B, C, D=None, z=None):
        return x

    def open_ended(*given, **named):
        return given[0]

    for op in ("step", "head step", "channel step"):
        with pytest.raises(ValueError, match="it has no argument for its state"):
            kernel(step, op=op)
        assert kernel(open_ended, op=op).op == op
