"""A recorded or drawn workload under any policy: what would have become of it."""

from kant_opt.io.traces import read_trace
from kant_opt.replay.result import JobRow, NodeRow, PolicyRun, ReplayResult, Scaling, StretchClass, Table
from kant_opt.replay.side_by_side import replay

__all__ = ["JobRow", "NodeRow", "PolicyRun", "ReplayResult", "Scaling", "StretchClass", "Table", "read_trace", "replay"]
