"""Files: whole or not at all, packed or not, refused in words."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kant_opt.errors import InputError
from kant_opt.io import load_placement, read_text, save, write_atomic
from kant_opt.io.files import read_head
from kant_opt.schema import Outcome, PlacedJob, PlacedPods, Placement, RunRecord


def test_text_comes_back(tmp_path: Path) -> None:
    for name in ("a.txt", "a.txt.gz"):
        write_atomic(tmp_path / name, "Grüße\n")
        assert read_text(tmp_path / name) == "Grüße\n"
        assert read_head(tmp_path / name, size=2) == "Gr"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "a.txt.gz"], "no temporary file stays"


def test_packed_files_are_known_by_content(tmp_path: Path) -> None:
    (tmp_path / "misnamed.json").write_bytes(gzip.compress(b"{}"))
    (tmp_path / "misnamed.gz").write_bytes(b"{}")
    assert read_text(tmp_path / "misnamed.json") == read_text(tmp_path / "misnamed.gz") == "{}"


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf{}")
    assert read_text(tmp_path / "a") == read_head(tmp_path / "a") == "{}"


def test_equal_text_gives_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_atomic(tmp_path / name, "x" * 100)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert (tmp_path / "a.gz").read_bytes()[4:8] == bytes(4), "gzip's field for the time of writing"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomic(tmp_path / "a", "old")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=r"a: cannot be written: no space left on device"):
        write_atomic(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "by-open").write_text("")
    write_atomic(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "by-open").stat().st_mode


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nope: cannot be read: no such file"):
        read_text(tmp_path / "nope")
    with pytest.raises(InputError, match=r"cannot be read: is a directory"):
        read_text(tmp_path)
    with pytest.raises(InputError, match=r"cannot be written: no such file"):
        write_atomic(tmp_path / "no" / "a", "")


def test_no_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by chmod: the tests may run as a user who may read everything."""

    def refused(self: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(InputError, match=r"a: cannot be read: permission denied"):
        read_text(tmp_path / "a")


def test_size_is_bounded_after_unpacking(tmp_path: Path) -> None:
    """3 KB of gzip that hold 3 MB: refused at the limit, whatever the packed size."""
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0" * 3_000_000))
    assert (tmp_path / "bomb.gz").stat().st_size < 10_000
    assert len(read_text(tmp_path / "bomb.gz", largest=3_000_000)) == 3_000_000
    with pytest.raises(InputError, match=r"bomb.gz: more than 2999999 bytes"):
        read_text(tmp_path / "bomb.gz", largest=2_999_999)


PLACED = Placement(jobs=(PlacedJob(job="j", pods=(PlacedPods(node="n1", count=2),)),))


def test_a_placement_comes_back_also_from_an_outcome(tmp_path: Path) -> None:
    save(PLACED, tmp_path / "p.json.gz")
    save(Outcome(status="FEASIBLE", placement=PLACED, run=RunRecord(backend="b")), tmp_path / "o.json")
    assert load_placement(tmp_path / "p.json.gz") == PLACED
    assert load_placement(tmp_path / "o.json") == PLACED


def test_an_outcome_without_placement_is_refused(tmp_path: Path) -> None:
    save(Outcome(status="INFEASIBLE", placement=None, run=RunRecord(backend="b")), tmp_path / "o.json")
    with pytest.raises(InputError, match=r"o.json: this outcome is 'INFEASIBLE' and holds no placement"):
        load_placement(tmp_path / "o.json")
