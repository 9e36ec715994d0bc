"""Backends from outside: a function as a backend, and one that another package offers by an entry point."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.backends import BACKENDS, Backend, FromFunction
from kant_opt.backends.outside import Outside, add_outside
from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.metrics import measure
from kant_opt.registry import Registry
from kant_opt.schema import Placement, Request
from kant_opt.testing.builders import gang, placement, racks
from kant_opt.testing.placements import placements
from kant_opt.testing.strategies import requests
from kant_opt.verify import verify

TWO = racks("8,8|8,8", jobs=[gang("a", 2, 8), gang("b", 2, 8)])


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BACKENDS, "_parts", dict(BACKENDS.items()))


def test_what_a_function_returns_is_measured_bounded_and_explained() -> None:
    """`a` is cut though a rack would hold it: traffic 1, bound 0; `b` has no reason but that nobody placed it."""
    BACKENDS.add("mine", FromFunction("mine", lambda request: placement(a={"r1n1": 1, "r2n1": 1})))
    outcome = place(TWO, backend="mine")
    admitted, traffic, *_ = outcome.levels
    assert (admitted.value, admitted.bound, traffic.value) == (16_000, 32_000, 1)
    assert outcome.placement == placement(a={"r1n1": 1, "r2n1": 1})
    assert [(reason.job, reason.kind) for reason in outcome.reasons] == [("b", "not_found")]


def test_a_placement_that_breaks_a_rule_is_the_functions_mistake() -> None:
    BACKENDS.add("mine", FromFunction("mine", lambda request: placement(a={"r1n1": 2})))
    with pytest.raises(InputError, match="backend 'mine' breaks a rule: capacity"):
        place(TWO, backend="mine")
    BACKENDS.add("none", FromFunction("none", lambda request: None))  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match=r"backend 'none' returned a NoneType: return a kant_opt.Placement"):
        place(TWO, backend="none")


@settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_valid_placement_comes_back_with_its_own_values(data: st.DataObject) -> None:
    """Whatever rules the request has: what was valid and worth something is no less so through the backend."""
    request = data.draw(requests())
    wanted = data.draw(placements(request, name_gpus=True))
    if verify(request, wanted):
        return
    known: Registry[Backend] = Registry("backend")
    known.add("given", FromFunction("given", lambda asked: wanted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BACKENDS, "_parts", dict(known.items()))
        outcome = place(request, backend="given", prove=False)
    assert outcome.placement is not None
    assert measure(request, outcome.placement) == measure(request, wanted)


# -- entry points ----------------------------------------------------------------------------------

PLUGIN = '''
"""Places nothing, and says which request it saw."""
from kant_opt import Placement
def nothing(request):
    return Placement()
number = 3
'''


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH in which a package `plug` is installed that offers three backends."""
    (tmp_path / "plug.py").write_text(PLUGIN)
    info = tmp_path / "plug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[kant_opt.backends]\nplug-nothing = plug:nothing\nplug-number = plug:number\ngreedy = plug:gone\n"
    )
    return tmp_path


def test_an_installed_package_brings_its_backends_also_into_a_studys_processes(installed: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(installed)!r})
from kant_opt.backends import BACKENDS
from kant_opt.study import run_study
print([name for name in BACKENDS if name in ("plug-nothing", "plug-number", "greedy")], "plug" in sys.modules)
for row in run_study(["toy/cut-gang"], ["plug-nothing", "plug-number", "greedy"], out={str(installed / "o")!r}).rows:
    print(row.status, row.levels[0].value if row.levels else row.reason)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert shown[0] == "['greedy', 'plug-nothing', 'plug-number'] False"
    assert shown[1] == "UNKNOWN 0"
    assert "backend 'plug-number' (plug:number) is a int: let it name a Backend" in shown[2]
    assert "backend 'greedy' (plug:gone) does not load: AttributeError" in shown[3]


def test_a_backend_and_a_class_of_one_are_taken_as_they_are() -> None:
    for name in ("kant_opt.backends.greedy:ESpread", "kant_opt.backends.baselines:first_fit"):
        found = Outside(EntryPoint("x", name, "kant_opt.backends"))._loaded()
        assert isinstance(found, Backend)


def test_a_name_that_is_taken_stays_with_its_owner(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    entry = EntryPoint("search", "plug:mine", "kant_opt.backends")
    monkeypatch.setattr("kant_opt.backends.outside.entry_points", lambda group: [entry])
    ours = BACKENDS["search"]
    add_outside()
    assert BACKENDS["search"] is ours
    assert "backend 'search' of plug:mine is left out" in caplog.text


def test_a_function_sees_the_request_and_needs_no_more_than_that() -> None:
    seen: list[Request] = []

    def look(request: Request) -> Placement:
        seen.append(request)
        return Placement()

    BACKENDS.add("look", FromFunction("look", look))
    place(TWO, backend="look")
    assert seen == [TWO]
