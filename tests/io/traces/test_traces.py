"""Readers of traces: the counts that each trace's own description gives, and files that are wrong in one way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kant_opt.errors import InputError, UnknownName
from kant_opt.io.traces import TRACES, Trace, TraceJob, read_trace, write_trace

SWF = "1 0 10 100 4 -1 -1 4 200 -1 1 7 1 -1 2 -1 -1 -1"


def at(shared: Path, name: str) -> Trace:
    return read_trace(shared / "traces" / name)


def gpu_counts(trace: Trace) -> dict[int, int]:
    return dict(Counter(job.gpus for job in trace))


def work_hours(trace: Trace) -> int:
    return round(sum((job.run_s or 0) * job.gpus for job in trace) / 3600)


@pytest.mark.parametrize(
    ("file", "jobs", "capacity", "without_run", "over_asked"),
    [
        ("KTH-SP2-1996-2.swf.gz", 28_489, 100, 8, 475),
        ("NASA-iPSC-1993-3.1-cln.swf.gz", 18_239, 128, 173, 0),
        ("HPC2N-first3171.swf", 3_170, 240, 25, 320),
        ("metacentrum-wagap-2013.swf.gz", 17_900, None, 2, 702),
        ("lublin_256.swf", 10_000, None, 0, 0),
        pytest.param("RICC-2010-2.swf.gz", 447_794, 8_192, None, 7_092, marks=pytest.mark.slow),
    ],
)
def test_archive_logs(
    shared: Path, file: str, jobs: int, capacity: int | None, without_run: int | None, over_asked: int
) -> None:
    trace = at(shared, f"pwa_swf/{file}")
    assert (trace.format, len(trace.jobs), trace.bad_lines) == ("swf", jobs, ())
    assert trace.capacity == capacity
    if without_run is not None:
        assert sum(not job.run_s for job in trace) == without_run
    assert sum(job.asked_s is not None and (job.run_s or 0) > job.asked_s for job in trace) == over_asked


def test_kth_is_known_job_by_job(shared: Path) -> None:
    trace = at(shared, "pwa_swf/KTH-SP2-1996-2.swf.gz")
    assert trace.states() == {"done": 20_541, "failed": 7_948}
    assert len({job.user for job in trace}) == 214
    assert work_hours(trace) == 560_916
    assert trace.jobs[0] == TraceJob("1", 0, 97_225, 56, 210_000, user="1", state="done", wait_s=964_980)


def test_metacentrum_tells_pods(shared: Path) -> None:
    """`1:ppn=64` is one pod of 64; one specification is a bare host name and tells nothing."""
    trace = at(shared, "pwa_swf/metacentrum-wagap-2013.swf.gz")
    assert trace.jobs[0].pods == 1
    assert trace.jobs[0].gpus == 64
    assert sum(job.pods is None for job in trace) < 0.01 * len(trace.jobs)


def test_philly(shared: Path) -> None:
    trace = at(shared, "philly/philly_jobs.csv.gz")
    sizes = {1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3}
    assert gpu_counts(trace) == sizes
    assert work_hours(trace) == 978_078
    assert round(trace.span_s / 86_400, 1) == 108.9
    assert trace.jobs[0].submit_s == 0
    assert len({job.queue for job in trace}) == 15
    assert len(trace.of_queue("103959").jobs) == 1_934
    with pytest.raises(UnknownName, match="103959"):
        trace.of_queue("10395")


def test_kalos(shared: Path) -> None:
    trace = at(shared, "acme/kalos_319jobs.csv")
    assert len(trace.jobs) == 319
    assert work_hours(trace) == 456_843
    assert max(job.run_s or 0 for job in trace) == 625_740
    assert sum(job.gpus == 8 * (job.pods or 0) for job in trace) == 249
    assert round(trace.span_s / 86_400, 2) == 90.04


@pytest.mark.parametrize(
    ("file", "jobs", "hours"),
    [("trace1", 1494, 383_327), ("trace2", 5755, 824_082), ("trace3", 992, 116_690), ("trace4", 2638, 204_902)],
)
def test_muri(shared: Path, file: str, jobs: int, hours: int) -> None:
    trace = at(shared, f"muri_philly/{file}.csv")
    assert (len(trace.jobs), work_hours(trace)) == (jobs, hours)


def test_openb(shared: Path) -> None:
    trace = at(shared, "openb/openb_pod_list_default.csv")
    assert gpu_counts(trace) == {0: 1088, 1: 6989, 2: 16, 4: 15, 8: 44}
    assert sum(job.gpu_milli is not None for job in trace) == 3078
    assert trace.states() == {"running": 5193, "failed": 1870, "waiting": 897, "done": 192}
    assert sum(job.run_s is None for job in trace) == 897
    waits = [job.wait_s for job in trace if job.wait_s is not None]
    assert (round(sum(waits) / len(waits)), max(waits)) == (61, 14_330)


def test_dlrm(shared: Path) -> None:
    trace = at(shared, "alibaba_dlrm_v2025/disaggregated_DLRM_trace.csv.gz")
    assert gpu_counts(trace) == {0: 16_485, 1: 7_386}
    assert trace.states()["running"] == 8_878
    assert sum(job.wait_s is None for job in trace) >= 7_280
    assert len({job.queue for job in trace}) == 156


def test_helios_columns_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration\n"
        "7,u1,vcA,16,64,2,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:01:10,2020-04-01 00:02:10,60\n"
        "6,u2,vcB,8,64,1,CANCELLED by 5,2020-04-01 00:00:00,,2020-04-01 00:00:05,0\n"
    )
    assert read_trace(path).jobs == (
        TraceJob("6", 0, None, 8, pods=1, user="u2", queue="vcB", state="cancelled"),
        TraceJob("7", 10, 60, 16, pods=2, user="u1", queue="vcA", state="done", wait_s=60),
    )


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    jobs = (
        TraceJob("a", -5, 60, 16, asked_s=90, pods=2, user="ü", queue="q", state="failed", wait_s=3),
        TraceJob("b", 0, None, 1, gpu_milli=250, inference=True),
    )
    path = tmp_path / "own.jsonl.gz"
    write_trace(Trace("own", "jsonl", jobs), path)
    assert read_trace(path).jobs == jobs
    assert set(TRACES) == {"openb", "dlrm", "kalos", "muri", "helios", "jsonl", "philly", "swf"}


def test_those_submitted_at_once_keep_the_order_of_the_queue(tmp_path: Path) -> None:
    """Simulators write jobs as they end; their numbers tell how they were submitted."""
    path = tmp_path / "log.swf"
    path.write_text("\n".join(SWF.replace("1", number, 1) for number in ("3", "1", "2")))
    assert [job.name for job in read_trace(path)] == ["1", "2", "3"]


BAD = [
    ("cut.swf", f"{SWF}\n1 2 3\n", "line 2: 3 fields of 18"),
    ("word.swf", f"{SWF}\n{SWF.replace('200', 'long')}\n", "line 2: 'long' is not a number"),
    ("cells.csv", "timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,6,1,a,b\n", "line 2: 5 cells for 4"),
    ("date.csv", "timestamp,duration,num_gpus,cluster\nyesterday,6,1,a\n", "line 2: column 'timestamp' is 'yesterday'"),
    ("part.csv", "timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,6,1.5,a\n", "column 'num_gpus' is '1.5'"),
    ("minus.csv", "timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,-6,1,a\n", "column 'duration' is '-6'"),
    ("huge.csv", "timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,9e99,1,a\n", "column 'duration' is '9e99'"),
    ("sum.csv", "job_id,submit_s,duration_s,nodes,gpus_per_node,gpus\n1,0,5,2,8,17\n", "17 GPUs on 2 nodes of 8"),
    ("list.jsonl", '{"name": "a", "submit_s": 0, "run_s": 1, "gpus": 1}\n[]\n', "line 2: a list, not an object"),
    ("field.jsonl", '{"name": "a", "submit_s": 0, "run_s": 1, "gpus": 1, "gpu": 2}\n', "unknown field 'gpu'"),
    ("pods.jsonl", '{"name": "a", "submit_s": 0, "run_s": 1, "gpus": 3, "pods": 2}\n', "3 GPUs in 2 pods"),
    ("true.jsonl", '{"name": "a", "submit_s": 0, "run_s": true, "gpus": 3}\n', "field 'run_s' is 'True'"),
]


@pytest.mark.parametrize(("name", "text", "told"), BAD, ids=[name for name, _, _ in BAD])
def test_a_bad_line_stops_the_reading_or_is_reported(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_trace(path)
    assert f"{name}: line" in str(error.value)
    assert told in str(error.value)
    trace = read_trace(path, on_bad="skip")
    assert len(trace.bad_lines) == 1
    assert "1 lines left out" in trace.notes[0]


def test_files_that_are_no_trace(tmp_path: Path) -> None:
    for name, text in (("empty", ""), ("words.txt", "good day\n"), ("table.csv", "a,b\n1,2\n"), ("bytes", "\x00\x01")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(InputError, match="no known trace"):
            read_trace(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="line 1: column 'timestamp' is missing"):
        read_trace(path, format="philly")
    with pytest.raises(UnknownName, match="trace format"):
        read_trace(path, format="phily")
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "nowhere")
