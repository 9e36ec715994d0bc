"""Slurm's numbers, times, sizes, GPUs and states."""

from __future__ import annotations

import pytest

from kant_opt.errors import InputError
from kant_opt.io.slurm.gres import Gpus, asks_for_shares, gpus_in, num_gpus
from kant_opt.io.slurm.state import closing_states, keeps_waiting, node_states
from kant_opt.io.slurm.values import duration_s, memory_mib, number, time_s


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (7, 7),
        ("7", 7),
        (0, 0),
        (7.0, 7),
        ({"set": True, "infinite": False, "number": 7}, 7),
        ({"set": False, "infinite": False, "number": 7}, None),
        ({"set": True, "infinite": True, "number": 0}, None),
        (-9223372036854775296, None),  # memory_per_cpu of 0.0.37 where none is set
        (-2, None),
        (2**32 - 2, None),  # NO_VAL
        (2**32 - 1, None),  # INFINITE
        (4294901756, 4294901756),  # a real priority, just below
        (2**64 - 2, None),
        (None, None),
        (True, None),
        ("seven", None),
        ("²", None),
    ],
)
def test_numbers_and_the_ways_to_say_none(value: object, meant: int | None) -> None:
    assert number(value) == meant


def test_narrow_fields_have_their_own_none() -> None:
    assert number(65534, bits=16) is None
    assert number(65534) == 65534
    assert number(2**33, bits=64) == 2**33


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10:00:00", 36_000),
        ("1-00:00:00", 86_400),
        ("2-03", 2 * 86_400 + 3 * 3600),
        ("30:15", 30 * 60 + 15),
        ("90", 5400),  # minutes alone
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        (None, None),
    ],
)
def test_durations(text: str | None, seconds: int | None) -> None:
    assert duration_s(text) == seconds


def test_times_and_sizes() -> None:
    assert time_s("1970-01-02T00:00:01") == 86_401
    assert time_s("Unknown") is None
    assert memory_mib("62.50G") == 64_000
    assert memory_mib("1K") == 1  # never less than asked for
    assert memory_mib("0") == 0
    assert memory_mib("a lot") is None


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu", [Gpus("", 1)]),
        ("gpu:4", [Gpus("", 4)]),
        ("gpu:h100", [Gpus("h100", 1)]),
        ("gpu:h100:4", [Gpus("h100", 4)]),
        ("gpu:h100:2,gpu:h200:4", [Gpus("h100", 2), Gpus("h200", 4)]),
        ("gpu:gen:8(S:0-1)", [Gpus("gen", 8)]),
        ("gpu:a100:2(S:0,2),nvme:1", [Gpus("a100", 2)]),  # a comma inside the parentheses
        ("gpu:tesla:no_consume:4", [Gpus("tesla", 4)]),
        ("gpu:h100:1(IDX:0)", [Gpus("h100", 1, (0,))]),
        ("gpu:h100:0(IDX:N/A)", [Gpus("h100", 0)]),
        ("gpu:3(IDX:0-1,5)", [Gpus("", 3, (0, 1, 5))]),
        ("gpu(IDX:2-3)", [Gpus("", 2, (2, 3))]),
        ("gpu(CNT:8)", [Gpus("", 8)]),
        ("gpu:h100(CNT:8)", [Gpus("h100", 8)]),
        ("gres:gpu:8", [Gpus("", 8)]),
        ("gres/gpu:h100:2", [Gpus("h100", 2)]),
        ("gres/gpu=2", [Gpus("", 2)]),
        ("gres/gpu:h100=2", [Gpus("h100", 2)]),
        ("shard:64,mps:100,gpufs:2,craynetwork:4", []),
        ("(null)", []),
        ("", []),
    ],
)
def test_gpus_in_every_form(text: str, gpus: list[Gpus]) -> None:
    assert list(gpus_in(text)) == gpus


@pytest.mark.parametrize(
    "text", ["gpu:a:b:2", "gpu:2(IDX:0-2)", "gpu:2(IDX:a)", "gpu:4(", "gpu(IDX:0-9999,0-9999)", "gpu=²"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="unknown form of GPUs"):
        num_gpus(text)


def test_shares_are_told_from_whole_gpus() -> None:
    assert asks_for_shares("gres/shard:4")
    assert asks_for_shares("gpu:1,mps:50")
    assert not asks_for_shares("gpu:sharded:4")


@pytest.mark.parametrize(
    ("told", "closed"),
    [
        (["idle", ["CLOUD", "NOT_RESPONDING", "POWERING_UP"]], []),  # Slurm resumes it
        (["allocated", ["CLOUD", "POWERED_DOWN"]], []),
        (["idle", ["CLOUD", "DRAIN", "POWERED_DOWN"]], ["DRAIN"]),
        ([["DOWN", "CLOUD"]], ["DOWN"]),
        ([["IDLE", "NOT_RESPONDING"]], ["NOT_RESPONDING"]),
        ([["IDLE", "POWERED_DOWN"]], ["POWERED_DOWN"]),
        (["IDLE*+DRAIN"], ["DRAIN", "NOT_RESPONDING"]),
        (["IDLE~"], ["POWERED_DOWN"]),
        (["MIXED+MAINT"], ["MAINTENANCE"]),
        (["MIXED$"], ["MAINTENANCE"]),
        ([["ALLOCATED", "FAIL"]], ["FAIL"]),
        ([["IDLE", "COMPLETING", "PLANNED", "RESERVED"]], []),
        (["MIXED+REBOOT_REQUESTED"], []),  # it still serves until the reboot is issued
        (["IDLE+REBOOT_ISSUED"], ["REBOOT_ISSUED"]),
    ],
)
def test_which_states_close_a_node(told: list[object], closed: list[str]) -> None:
    assert closing_states(node_states(*told)) == closed


@pytest.mark.parametrize("reason", ["JobHeldUser", "Dependency", "QOSMaxJobsPerUserLimit", "AssocGrpGRES", "Licenses"])
def test_reasons_that_no_room_would_cure(reason: str) -> None:
    assert keeps_waiting(reason)


@pytest.mark.parametrize("reason", [None, "Resources", "Priority", "ReqNodeNotAvail"])
def test_reasons_that_room_would_cure(reason: str | None) -> None:
    assert not keeps_waiting(reason)
