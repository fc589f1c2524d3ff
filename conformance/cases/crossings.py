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

NAMED = {
    "crossed": crossed_cases,
    "where chunks meet": border_cases,
    "ends of chunks": chunk_end_cases,
    "ordinary": ordinary_cases,
    "sizes of layers": layer_cases,
    "forms": form_cases,
    "told": told_cases,
    "largest sizes": large_cases,
}
"""By the names that pages give them."""
CROSSINGS = tuple(NAMED.values())
