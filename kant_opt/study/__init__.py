"""How far is a heuristic from the best possible? Stored instances and the best that is known of each."""

from kant_opt.study.instances import Instances, digest_of
from kant_opt.study.records import Record, check, merged, read_records, submit

__all__ = ["Instances", "Record", "check", "digest_of", "merged", "read_records", "submit"]
