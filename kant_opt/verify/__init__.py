"""The independent judge of placements: it knows the data and the fabric, never how an answer was found."""

from kant_opt.verify.certificate import CertificateCheck, check_certificate
from kant_opt.verify.index import RequestIndex
from kant_opt.verify.verifier import check, verify
from kant_opt.verify.violation import RULES, Violation

__all__ = ["RULES", "CertificateCheck", "RequestIndex", "Violation", "check", "check_certificate", "verify"]
