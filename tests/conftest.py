"""Settings of every test run."""

import gc
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy is loaded, and by the processes that tests start

import torch

torch.set_num_threads(1)


def pytest_collection_finish() -> None:
    """Half a million objects of torch, transformers and the tests stay to the end: collections leave them out."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
