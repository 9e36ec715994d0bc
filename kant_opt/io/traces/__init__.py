"""Recorded workloads in the formats in which they are published. Importing it fills TRACES."""

from kant_opt.io.traces import alibaba, gpu_clusters, native, philly, swf
from kant_opt.io.traces.formats import TRACES, OnBad, TraceFormat, read_trace
from kant_opt.io.traces.native import write_trace
from kant_opt.io.traces.trace import BadLine, JobState, Trace, TraceJob

del alibaba, gpu_clusters, native, philly, swf

__all__ = [
    "TRACES",
    "BadLine",
    "JobState",
    "OnBad",
    "Trace",
    "TraceFormat",
    "TraceJob",
    "read_trace",
    "write_trace",
]
