"""Certificates: proofs about the weights of a real module, for every input of a stated domain."""

from verify.certificates.ask import Ask, adjacent_pairs
from verify.certificates.certificate import Certificate, Refused, Violated
from verify.certificates.certify import certify
from verify.certificates.inductive import InductiveCertificate, certify_latches
from verify.certificates.kernel import KernelCertificate, certify_kernel

__all__ = [
    "Ask",
    "Certificate",
    "InductiveCertificate",
    "KernelCertificate",
    "Refused",
    "Violated",
    "adjacent_pairs",
    "certify",
    "certify_kernel",
    "certify_latches",
]
