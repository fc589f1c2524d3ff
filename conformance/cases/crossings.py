"""All cases in which options meet, in the order in which they are asked."""

from __future__ import annotations

from conformance.cases.borders import border_cases
from conformance.cases.chunk_ends import chunk_end_cases
from conformance.cases.crossed import crossed_cases
from conformance.cases.forms import form_cases
from conformance.cases.large import large_cases
from conformance.cases.layers import layer_cases
from conformance.cases.ordinary import ordinary_cases
from conformance.cases.told import told_cases

CROSSINGS = (
    *(crossed_cases, border_cases, chunk_end_cases, ordinary_cases, layer_cases, form_cases, told_cases),
    large_cases,
)
