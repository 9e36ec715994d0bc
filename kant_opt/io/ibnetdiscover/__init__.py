"""`ibnetdiscover`: the switches and cables of an InfiniBand fabric, as a graph."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from kant_opt.errors import InputError
from kant_opt.io.files import read_head, read_text
from kant_opt.io.formats import FORMATS, Read
from kant_opt.io.ibnetdiscover.dump import Dump, read_dump
from kant_opt.io.objects import Notes
from kant_opt.schema import Request, parse

_SIGNATURE = re.compile(r'^(?:Switch|Ca)[ \t]+\d+[ \t]+"[SH]-', re.MULTILINE)


class IbnetdiscoverFormat:
    """A dump of the subnet. Hosts with equal sets of leaves become one unit when the levels are derived."""

    name = "ibnetdiscover"
    looks_for = "the output of 'ibnetdiscover'"

    def sniff(self, source: Path) -> bool:
        """Return whether the beginning holds the head of a switch or adapter."""
        return source.is_file() and _SIGNATURE.search(read_head(source)) is not None

    def read_with_notes(self, source: Path) -> Read:
        """Return the fabric as a request; nodes are without GPUs, as the dump tells none. Costs time linear in it."""
        notes = Notes()
        dump = read_dump(read_text(source), source.name, notes)
        if not dump.switches:
            raise InputError("no switch in it", place=source.name, way_out="run ibnetdiscover on a host of the fabric")
        names = _names(dump)
        leaves = {guid for guid, _ in dump.rails}
        links = [
            {"a": names[a], "b": names[b], "gbps": gbps, "links": num}
            for (a, b, gbps), num in sorted(Counter((a, b, g) for (a, _), (b, _), g in dump.trunks).items())
        ]
        links += [
            {"a": names[guid], "b": host, "gbps": gbps, "links": num}
            for (guid, host), cables in sorted(dump.rails.items())
            for gbps, num in sorted(Counter(cables).items())
        ]
        switches = [{"name": names[g], "kind": "leaf" if g in leaves else "spine"} for g in sorted(dump.switches)]
        hosts = sorted({host for _, host in dump.rails})
        for host in hosts:
            notes.add("nodes whose GPUs the dump does not tell, read as without", host)
        data = {
            "fabric": {"switches": switches, "links": links},
            "nodes": [{"name": host} for host in hosts],
        }
        return parse(Request, data, place=source.name), notes.sentences()


def _names(dump: Dump) -> dict[str, str]:
    """Return GUID -> name: what people call the switch, with its GUID where two are called alike or as a host."""
    hosts = {host for _, host in dump.rails}
    times = Counter(dump.switches.values())
    return {
        guid: name if name and times[name] == 1 and name not in hosts else f"{name or 'switch'} {guid}"
        for guid, name in dump.switches.items()
    }


FORMATS.add("ibnetdiscover", IbnetdiscoverFormat())
