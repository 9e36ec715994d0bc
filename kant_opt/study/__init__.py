"""How far is a heuristic from the best possible? Stored instances, the best that is known, grids of runs, gaps."""

from kant_opt.study.compare import Change, Comparison, compare
from kant_opt.study.gaps import GapRow, gap_rows
from kant_opt.study.instances import Instances, digest_of
from kant_opt.study.records import Record, check, merged, read_records, submit
from kant_opt.study.rows import Row, read_rows
from kant_opt.study.run import StudyResult, run_study
from kant_opt.study.tables import as_csv, as_latex

__all__ = [
    "Change",
    "Comparison",
    "GapRow",
    "Instances",
    "Record",
    "Row",
    "StudyResult",
    "as_csv",
    "as_latex",
    "check",
    "compare",
    "digest_of",
    "gap_rows",
    "merged",
    "read_records",
    "read_rows",
    "run_study",
    "submit",
]
