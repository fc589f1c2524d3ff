"""Process settings under which float32 on a GPU is float32."""

import os

import torch


def exact_float32():
    """Makes products of float32 matrices exact to float32, on CUDA above all; the defaults on a CPU already are.

    By default cuDNN convolutions and Triton's `tl.dot` round float32 operands to TF32, whose 11-bit significand
    holds integers to 2^11 only. Triton reads its variable when it compiles a kernel: call this before the first.
    """
    os.environ["TRITON_F32_DEFAULT"] = "ieee"
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
