"""Two traces of Alibaba: openb (cluster-trace-gpu-v2023) and disaggregated DLRM inference (v2025)."""

from __future__ import annotations

from kant_opt.errors import InputError
from kant_opt.io.traces.cells import Cells
from kant_opt.io.traces.formats import TRACES, TableFormat
from kant_opt.io.traces.trace import JobState, TraceJob
from kant_opt.units import MILLI

_PHASES: dict[str, JobState] = {"Succeeded": "done", "Failed": "failed", "Pending": "waiting", "Running": "running"}


def _openb(cells: Cells) -> TraceJob:
    """Weng et al., USENIX ATC 2023. A pod that never got a node has no run time; CPU and memory are not read here."""
    gpus, milli = cells.count("num_gpu"), cells.count("gpu_milli")
    submit, run, wait = _life(cells)
    return TraceJob(
        name=cells.text("name"),
        submit_s=submit,
        run_s=run,
        gpus=gpus,
        pods=1,
        gpu_milli=milli if gpus == 1 and 0 < milli < MILLI else None,
        user=cells.text("qos"),
        state=_PHASES.get(cells.text("pod_phase"), "unknown"),
        wait_s=wait,
        inference=cells.text("qos") == "LS",  # latency-sensitive
    )


def _dlrm(cells: Cells) -> TraceJob:
    """Yang et al., NSDI 2025. Instances alive at the start come at 0; those alive at the end have no run time."""
    alive = not cells.text("deletion_time")
    submit, run, wait = _life(cells)
    return TraceJob(
        name=cells.text("instance_sn"),
        submit_s=submit,
        run_s=run,
        gpus=cells.count("gpu_request"),
        pods=1,
        queue=cells.text("app_name"),
        state="running" if alive else "done",
        wait_s=wait,
        inference=True,
    )


def _life(cells: Cells) -> tuple[int, int | None, int | None]:
    """Return submission, run time and wait."""
    created, started, ended = (cells.time(f"{what}_time") for what in ("creation", "scheduled", "deletion"))
    if started is None and created is None and ended is not None:
        return 0, ended, None  # it ran already when the recording began
    if started is None or ended is None:
        return created or 0, None, None
    if ended < started:
        raise InputError(f"deleted at {ended}, before its start at {started}", way_out="correct it")
    return started if created is None else created, ended - started, None if created is None else started - created


for _format in (
    TableFormat(
        "openb",
        "a CSV with name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time (openb's pods)",
        ("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"),
        _openb,
    ),
    TableFormat(
        "dlrm",
        "a CSV with instance_sn,app_name,gpu_request,creation_time,scheduled_time,deletion_time (Alibaba v2025)",
        ("instance_sn", "app_name", "gpu_request", "creation_time", "scheduled_time", "deletion_time"),
        _dlrm,
    ),
):
    TRACES.add(_format.name, _format)
