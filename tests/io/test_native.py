"""The native format: lossless, the same in JSON and YAML, packed or not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kant_opt.errors import InputError, UnknownName
from kant_opt.io import FORMATS, Format, formats, read_request, save
from kant_opt.registry import Registry
from kant_opt.schema import PodSet, Request, Slice, to_json


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "tests" / "data" / "native"


def test_json_and_yaml_say_the_same(folder: Path) -> None:
    """The two files were written by hand, field by field the same."""
    from_json, notes = read_request(folder / "good.json")
    assert read_request(str(folder / "good.yaml")) == (from_json, notes)
    assert notes == ()
    assert from_json.nodes[1].path == ("s1", None)
    assert from_json.jobs[0].podsets == (
        PodSet(count=4, gpus=2, preferred_level="leaf", slices=(Slice(level="leaf", size=2),)),
    )


@pytest.mark.parametrize("name", ["r.json", "r.json.gz"])
def test_what_is_saved_comes_back(folder: Path, tmp_path: Path, name: str) -> None:
    request, _ = read_request(folder / "good.json")
    save(request, tmp_path / name)
    assert read_request(tmp_path / name) == (request, ())


def test_yaml_of_any_writer_comes_back(folder: Path, tmp_path: Path) -> None:
    request, _ = read_request(folder / "good.json")
    (tmp_path / "r").write_text(yaml.safe_dump(request.model_dump(mode="json", by_alias=True)))
    assert read_request(tmp_path / "r") == (request, ())


def test_content_decides_not_the_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text((folder / "good.json").read_text())
    assert read_request(tmp_path / "pods.csv") == read_request(folder / "good.json")


def test_schema_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"nodes": [{"name": "n", "gpus": 1}]}')
    request, _ = read_request(tmp_path / "r.json")
    assert request == Request.model_validate({"nodes": [{"name": "n", "gpus": 1}]})
    assert to_json(request).startswith('{"schema":1,')


def test_unknown_content_tells_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    with pytest.raises(InputError) as caught:
        read_request(tmp_path / "notes.txt")
    for name in FORMATS:
        assert f"{name}: {FORMATS[name].looks_for}" in str(caught.value)


def test_unknown_format_and_missing_file(folder: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'native'"):
        read_request(folder / "good.json", format="natve")
    with pytest.raises(InputError, match=r"nowhere.json: no such file or folder"):
        read_request("nowhere.json")


def test_the_native_format_steps_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys are words that others use too: a format that is surer goes first."""
    answer = Request.model_validate({"nodes": []})

    class Surer:
        name = "surer"
        looks_for = "anything"

        def sniff(self, source: Path) -> bool:
            return True

        def read_with_notes(self, source: Path) -> tuple[Request, tuple[str, ...]]:
            return answer, ("surer",)

    both: Registry[Format] = Registry("format")
    both.add("native", FORMATS["native"])
    both.add("surer", Surer())
    monkeypatch.setattr(formats, "FORMATS", both)
    assert read_request(folder / "good.json") == (answer, ("surer",))


def test_a_deep_value_in_a_known_field_is_refused(tmp_path: Path) -> None:
    """Python shows such values by recursion: the error must not fail while it is told."""
    for depth in (50, 400, 900):
        (tmp_path / "r.json").write_text('{"schema": 1, "name": ' + "[" * depth + "]" * depth + ', "nodes": []}')
        with pytest.raises(InputError, match=r"^r.json: "):
            read_request(tmp_path / "r.json")
