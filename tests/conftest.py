"""Settings of every test run."""

import gc

import torch

torch.set_num_threads(1)


def pytest_collection_finish() -> None:
    """Half a million objects of torch, transformers and the tests stay to the end: collections leave them out."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
