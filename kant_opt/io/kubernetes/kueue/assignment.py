"""Kueue's TopologyAssignment: which domains hold how many pods, as a list (v1beta1) or in slices (v1beta2)."""

from __future__ import annotations

from typing import TypeVar

from kant_opt.io.objects import Object

MOST_DOMAINS = 1_000_000
"""Domains of one assignment that are read; Kueue's own bound is 1,000 slices of 100,000 roots in all."""

Domain = tuple[tuple[str, ...], int]
"""A domain's value on each level, outermost first, and its pods."""
T = TypeVar("T")


def read_assignment(assignment: Object) -> tuple[tuple[str, ...], list[Domain]]:
    """Return the levels (label keys, outermost first) and the domains in the order of the pods' ranks.

    Raises InputError where lists differ in length, or for more than MOST_DOMAINS domains.
    """
    levels = assignment.words("levels")
    domains: list[Domain] = []
    for item in assignment.children("domains"):
        values = item.words("values")
        if len(values) != len(levels):
            raise item.fault("values", f"{len(values)} values for {len(levels)} levels", "give one per level")
        domains.append((values, _count(item, "count", 1)))
    for item in assignment.children("slices"):
        num = _count(item, "domainCount", 1)
        if len(domains) + num > MOST_DOMAINS:
            raise item.fault("domainCount", f"more than {MOST_DOMAINS} domains", "split the workload")
        if num > 1 and not any("individual" in level for level in item.children("valuesPerLevel")):
            raise item.fault("domainCount", f"{num} domains of one name", "give the names as individual")
        columns = [_values(level, num) for level in item.children("valuesPerLevel")]
        if len(columns) != len(levels):
            raise item.fault("valuesPerLevel", f"{len(columns)} entries for {len(levels)} levels", "give one per level")
        pods = _pods(item.child("podCounts"), num)
        domains += [(tuple(column[i] for column in columns), pods[i]) for i in range(num)]
    return levels, domains


def _values(level: Object, num: int) -> list[str]:
    if "universal" in level:
        return [level.required("universal")] * num
    parts = level.child("individual")
    prefix, suffix = parts.text("prefix"), parts.text("suffix")
    return [f"{prefix}{root}{suffix}" for root in _as_many(parts, "roots", parts.words("roots"), num)]


def _pods(counts: Object, num: int) -> list[int]:
    if "universal" in counts:
        return [_count(counts, "universal", 1)] * num
    return _as_many(counts, "individual", counts.integers("individual"), num)


def _as_many(holder: Object, key: str, values: tuple[T, ...], num: int) -> list[T]:
    if len(values) != num:
        raise holder.fault(key, f"{len(values)} entries for {num} domains", "give one per domain")
    return list(values)


def _count(item: Object, key: str, least: int) -> int:
    value = item.integer(key)
    if value is None or value < least:
        raise item.fault(key, "missing" if value is None else f"{value} is below {least}", "correct it")
    return value
