"""GPU clusters' logs that are tables with times in seconds: Kalos, Muri, and the layout of Helios and the full Acme."""

from __future__ import annotations

from kant_opt.errors import InputError
from kant_opt.io.traces.cells import Cells, needed
from kant_opt.io.traces.formats import TRACES, TableFormat
from kant_opt.io.traces.trace import JobState, TraceJob

_STATES: dict[str, JobState] = {"COMPLETED": "done", "FAILED": "failed", "NODE_FAIL": "failed", "TIMEOUT": "failed"}


def _kalos(cells: Cells) -> TraceJob:
    """Hu et al., NSDI 2024: large language models at Shanghai AI Lab; only jobs that completed."""
    pods, each, gpus = cells.count("nodes"), cells.count("gpus_per_node"), cells.count("gpus")
    if pods * each != gpus:
        raise InputError(f"{gpus} GPUs on {pods} nodes of {each} each", way_out="correct one of the three")
    return TraceJob(
        name=cells.text("job_id"),
        submit_s=needed(cells.time("submit_s"), "submit_s"),
        run_s=cells.seconds("duration_s"),
        gpus=gpus,
        pods=pods or None,
        state="done",
    )


def _muri(cells: Cells) -> TraceJob:
    """Zhao et al., SIGCOMM 2022: sizes, arrivals and durations from Philly; times in milliseconds."""
    return TraceJob(
        name=cells.text("job_id"),
        submit_s=needed(cells.time("submit_time", per_second=1000), "submit_time"),
        run_s=cells.seconds("duration", per_second=1000),
        gpus=cells.count("num_gpu"),
        queue=cells.text("model_name"),
    )


def _helios(cells: Cells) -> TraceJob:
    """Hu et al., SC 2021, and Acme's full logs: Slurm's accounts with dates; durations in seconds."""
    submit, start = needed(cells.clock("submit_time"), "submit_time"), cells.clock("start_time")
    gpus, pods = cells.count("gpu_num"), cells.count("node_num")
    state = cells.text("state").partition(" ")[0]
    return TraceJob(
        name=cells.text("job_id"),
        submit_s=submit,
        run_s=cells.seconds("duration") if start is not None else None,
        gpus=gpus,
        pods=pods if pods and gpus % pods == 0 else None,
        user=cells.text("user"),
        queue=cells.text("vc"),
        state="cancelled" if state.startswith("CANCELLED") else _STATES.get(state, "unknown"),
        wait_s=None if start is None else max(0, start - submit),
    )


for _format in (
    TableFormat(
        "kalos",
        "a CSV with job_id,submit_s,duration_s,nodes,gpus_per_node,gpus (Acme's Kalos)",
        ("job_id", "submit_s", "duration_s", "nodes", "gpus_per_node", "gpus"),
        _kalos,
    ),
    TableFormat(
        "muri",
        "a CSV with job_id,num_gpu,submit_time,iterations,model_name,duration,iteration_time (Muri), milliseconds",
        ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "iteration_time"),
        _muri,
    ),
    TableFormat(
        "helios",
        "a CSV with job_id,user,gpu_num,node_num,state,submit_time,start_time,duration (Helios, Acme)",
        ("job_id", "user", "gpu_num", "node_num", "state", "submit_time", "start_time", "duration"),
        _helios,
        wall_clock=True,
    ),
):
    TRACES.add(_format.name, _format)
