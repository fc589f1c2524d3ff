"""Running real Mamba modules anywhere: exact CPU scans, and the real classes dispatched by device."""

from compiler.runtime.huggingface import torch_only_transformers
from compiler.runtime.precision import exact_float32
from compiler.runtime.real_modules import block_classes, has_mamba_ssm, is_real_block, mamba_classes, real_block
from compiler.runtime.selective_scan import selective_scan
from compiler.runtime.ssd import ssd_scan

__all__ = [
    "block_classes",
    "exact_float32",
    "has_mamba_ssm",
    "is_real_block",
    "mamba_classes",
    "real_block",
    "selective_scan",
    "ssd_scan",
    "torch_only_transformers",
]
