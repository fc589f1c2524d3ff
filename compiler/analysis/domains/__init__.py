"""Domains: what every stream can hold under the input language.

A domain is, for every lane, a lattice (all values are multiples of a power of two), an interval
and a sum over a whole sequence (total: how much a running sum can collect), and one sum over the
lanes of a position (l1: 1 for a one-hot). Everything the compiler promises about exactness is
arithmetic on these four.

Each operation has its own rule (`Operation.domain`).
"""

from compiler.analysis.domains.known import Domains, DomainsDraft

__all__ = ["Domains", "DomainsDraft"]
