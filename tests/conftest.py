"""Settings of every test run."""

import gc
import os
import sys
from functools import cache

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy is loaded, and by the processes that tests start

import pytest
import torch
import typer.testing

from compiler.runtime import torch_only_transformers
from tests import spread
from tests.quick import Touched, chosen

torch.set_num_threads(1)
# CliRunner reads the options of all commands at each call, which takes a tenth of a second.
typer.testing._get_command = cache(typer.testing._get_command)
gc.set_threshold(100_000, 20, 100)  # the tests are read: what is made by that stays


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="one test of each file: the one marked quick, or the first")
    parser.addoption("--spread", action="store_true", help="of many cases as many as take a quarter of a second")
    parser.addoption("--touched", action="store_true", help="name the modules of the project of which no function ran")


def pytest_configure(config: pytest.Config) -> None:
    spread.begin(whole=not (config.option.quick or config.option.spread))
    config.pluginmanager.register(spread.Measured())
    if config.option.touched:
        config.pluginmanager.register(Touched())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = items
    if config.option.quick:
        kept = chosen(items, spread.read())
    elif config.option.spread:
        kept = spread.spread(items, spread.read())
    config.hook.pytest_deselected(items=[*set(items).difference(kept)])
    items[:] = kept


def pytest_collection_finish() -> None:
    if "transformers" in sys.modules:
        # Else it calls mamba_ssm, on a CPU our own scans, in a process where a test before has imported that: its
        # models would run otherwise by the order of the tests, and be no oracle.
        torch_only_transformers()
    _freeze()


def _freeze() -> None:
    """Half a million objects of torch, transformers and the tests stay to the end: collections leave them out. What
    tests keep grows too, so the whole of it is seldom gone through.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 40)
