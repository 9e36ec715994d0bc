"""The lines of ibnetdiscover's dump: switches, cables between them, rails to hosts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kant_opt.errors import InputError
from kant_opt.io.objects import Notes

_HEAD = re.compile(r'(Switch|Ca)\s+\d+\s+"([SH]-[0-9a-fA-F]+)"\s*#\s*"([^"]*)"')
_PORT = re.compile(r'\[(\d{1,4})\]\s*"([SH]-[0-9a-fA-F]+)"\[(\d{1,4})\](?:\([0-9a-fA-F]+\))?\s*(?:#\s*"([^"]*)")?(.*)')
_SPEED = re.compile(r"\b(\d{1,2})x([A-Z]{3}\d{0,2})\b")
_ADAPTER = re.compile(r"(\S+)\s+(?:mlx\d+_\d+|HCA-\d+|ibp\S+|hfi\d+_\d+)")
_NO_NODE = re.compile(r"localhost.*|ubuntu|.*ufm.*", re.IGNORECASE)
"""Hosts that say nothing of who they are, and fabric managers."""
_GBPS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
"""Gbit/s of one lane."""
_USUAL_GBPS = 400

Port = tuple[str, int]
"""A switch's GUID and its port."""


@dataclass
class Dump:
    """What the dump tells. A cable counts once, though both its ends tell of it."""

    switches: dict[str, str] = field(default_factory=dict)
    """GUID -> name, empty where it has none."""
    trunks: set[tuple[Port, Port, int]] = field(default_factory=set)
    """Cables between switches, the lower end first, with Gbit/s."""
    rails: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """(GUID of the switch, host) -> Gbit/s of each cable."""


def read_dump(text: str, place: str, notes: Notes) -> Dump:
    """Return the dump in a text. Raises InputError for a line of a port that cannot be read."""
    dump = Dump()
    here = ""  # the switch whose ports are being listed; adapters list theirs too, which the switches told already
    far: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if match := _HEAD.match(line):
            here = match[2] if match[1] == "Switch" else ""
            if here:
                dump.switches[here] = _switch_name(match[3])
        elif not line:
            here = ""
        elif here and line.startswith("["):
            if (port := _PORT.match(line)) is None:
                raise InputError(f"{line[:40]!r} is no port", place=f"{place}: line {number}", way_out="correct it")
            gbps = _gbps(port[5], notes, f"line {number}")
            if port[2].startswith("S-"):
                far.setdefault(port[2], _switch_name(port[4] or ""))
                near, other = sorted(((here, int(port[1])), (port[2], int(port[3]))))
                dump.trunks.add((near, other, gbps))
            elif (host := _host(port[4] or "", notes)) is not None:
                dump.rails.setdefault((here, host), []).append(gbps)
    for guid, name in far.items():  # a switch that only its neighbours tell of
        dump.switches.setdefault(guid, name)
    return dump


def _host(description: str, notes: Notes) -> str | None:
    match = _ADAPTER.fullmatch(description.strip())
    if match is None:
        notes.add("adapters that name no host are left out", description.strip() or "unnamed")
        return None
    if _NO_NODE.fullmatch(match[1]):
        notes.add("adapters of fabric managers and unnamed hosts are left out", match[1])
        return None
    return match[1]


def _switch_name(description: str) -> str:
    """Return the name in "MF0;name:model/U1", else all of it."""
    return description.rpartition(";")[2].partition(":")[0].strip()


def _gbps(tail: str, notes: Notes, where: str) -> int:
    match = _SPEED.search(tail)
    lane = _GBPS.get(match[2]) if match else None
    if match is None or not lane or not int(match[1]):
        notes.add(f"cables of unknown speed, read as {_USUAL_GBPS} Gbit/s", where)
        return _USUAL_GBPS
    return max(1, int(int(match[1]) * lane))
