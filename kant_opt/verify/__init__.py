"""The independent judge of placements: it knows the data and the fabric, never how an answer was found."""

from kant_opt.verify.certificate import CertificateCheck, check_certificate
from kant_opt.verify.index import RequestIndex
from kant_opt.verify.plan import PLAN_RULES, verify_plan
from kant_opt.verify.verifier import check, verify
from kant_opt.verify.violation import RULES, Violation

__all__ = [
    "PLAN_RULES",
    "RULES",
    "CertificateCheck",
    "RequestIndex",
    "Violation",
    "check",
    "check_certificate",
    "verify",
    "verify_plan",
]
