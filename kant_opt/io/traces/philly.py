"""Philly as one table: the virtual clusters of Microsoft in 2017, flat as the schedulers of later papers read it.

Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019. No users,
no times asked, no states, not sorted; the virtual cluster is the queue.
"""

from __future__ import annotations

from kant_opt.io.traces.cells import Cells, needed
from kant_opt.io.traces.formats import TRACES, TableFormat
from kant_opt.io.traces.trace import TraceJob


def _job(cells: Cells) -> TraceJob:
    submit = needed(cells.clock("timestamp"), "timestamp")
    return TraceJob(
        name="",  # there are none: its line
        submit_s=submit,
        run_s=needed(cells.seconds("duration"), "duration"),
        gpus=cells.count("num_gpus"),
        queue=cells.text("cluster"),
    )


TRACES.add(
    "philly",
    TableFormat(
        name="philly",
        looks_for="a CSV with timestamp,duration,num_gpus,cluster",
        columns=("timestamp", "duration", "num_gpus", "cluster"),
        job=_job,
        wall_clock=True,
    ),
)
