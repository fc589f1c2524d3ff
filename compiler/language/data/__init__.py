"""Circuits and input languages as data: JSON values that hold every number exactly, and the way back."""

from compiler.language.data.circuits import VERSION, from_data, origin_of, to_data
from compiler.language.data.languages import language_from_data, language_to_data
from compiler.language.data.scalars import DataError

__all__ = ["VERSION", "DataError", "from_data", "language_from_data", "language_to_data", "origin_of", "to_data"]
