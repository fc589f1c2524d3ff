"""Programs on a device: the CPU, or CUDA with the kernels of mamba_ssm and causal_conv1d."""

from __future__ import annotations

from compiler import Compiled, language_model
from compiler.artifact.config import cuda_limits, module_limits
from compiler.artifact.package import packaged_sizes
from compiler.runtime import exact_float32, mamba_classes, torch_only_transformers
from compiler.runtime.huggingface import routed_transformers
from conformance.runtimes.cuda import check_cuda

SECONDS = {"cpu": 10, "cuda": 120}  # of processor time for one model: Triton compiles its kernels within
REFUSALS = {  # what the kernels say, and what a manifest then says
    "causal_conv1d only supports width": "conv_kernel is",
    "causal_conv1d only supports channel dimension": "convolved channels",
    "Number of convolution channels is required to be a multiple of 8": "convolved channels",
    "causal_conv1d with channel last layout requires strides": "in_proj has",
    "selective_scan only supports state dimension": "state_size is",
}


def prepare(device: str) -> None:
    """What a process needs before its first model; RuntimeError where CUDA or the kernels are missing."""
    if device == "cuda":
        check_cuda()
        exact_float32()
        mamba_classes()


def transformers_definitions(device: str) -> None:
    """On a CPU transformers runs its own PyTorch code; on CUDA the functions of the kernels in it."""
    (routed_transformers if device == "cuda" else torch_only_transformers)()


def not_for_the_kernels(compiled: Compiled, form: str, reason: str) -> bool:
    """Whether an error is the kernels' own refusal of a model, and its manifest says the same."""
    said = [limit for refusal, limit in REFUSALS.items() if refusal in reason]
    return bool(said) and any(said[0] in sentence for sentence in _limits(compiled, form))


def _limits(compiled: Compiled, form: str) -> list[str]:
    """Why the model of a form is not for the kernels; [] where nothing says so."""
    if form in ("language model", "transformers"):
        return cuda_limits(language_model(compiled).config)
    target = compiled.context.target
    return [sentence for size in packaged_sizes(compiled) for sentence in module_limits(target, size)]
