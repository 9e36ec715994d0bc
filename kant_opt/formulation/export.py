"""A program as text that other solvers read: CPLEX LP, free MPS, CP-SAT's. The same program gives the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kant_opt.errors import InputError
from kant_opt.formulation.program import Program, Sense

_TERMS_A_LINE = 8  # readers stop at 510 characters
_ODD = re.compile(r"\W", re.ASCII)
_FAR = 1 << 63
_QUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
_MPS_SENSE = {Sense.LE: "L", Sense.GE: "G", Sense.EQ: "E"}


def to_lp(program: Program, level: int = 0, fixed: Sequence[int] = ()) -> str:
    """Return the program as CPLEX LP text, to optimise objective level number `level`.

    `fixed` are values that levels 0, 1, .. may not become worse than: those of the levels solved before.
    """
    names, rows = _names(program.names), _names(program.row_names)
    aim = program.levels[level]
    lines = [
        f"\\ level {i}: {'maximise' if x.sense == 'max' else 'minimise'} {x.name}" for i, x in enumerate(program.levels)
    ]
    lines.append("Maximize" if aim.sense == "max" else "Minimize")
    lines += _sum("objective", [(names[i], c) for i, c in aim.terms.items()] + [("one", aim.constant)])
    lines.append("Subject To")
    for r, sense in enumerate(program.senses):
        terms = [(names[i], c) for i, c in program.terms_of(r)]
        lines += _sum(rows[r], terms, f" {sense.value} {program.rhs[r]}")
    for name, kept, sense, rhs in _fixing(program, fixed):
        lines += _sum(name, [(names[i], c) for i, c in kept], f" {sense.value} {rhs}")
    lines += ["Bounds", " one = 1"]
    lines += [f" {lo} <= {name} <= {up}" for name, lo, up in zip(names, program.lower, program.upper, strict=True)]
    lines.append("General")
    lines += [f" {name}" for name, whole in zip(names, program.integer, strict=True) if whole]
    return "\n".join([*lines, "End", ""])


def to_mps(program: Program, level: int = 0, fixed: Sequence[int] = ()) -> str:
    """Return the program as free MPS text; arguments as for `to_lp`."""
    names, rows = _names(program.names), _names(program.row_names)
    aim = program.levels[level]
    extra = list(_fixing(program, fixed))
    columns: list[list[tuple[str, int]]] = [[] for _ in names]
    for i, c in aim.terms.items():
        columns[i].append(("objective", c))
    for r in range(len(rows)):
        for i, c in program.terms_of(r):
            columns[i].append((rows[r], c))
    for name, terms, _, _ in extra:
        for i, c in terms:
            columns[i].append((name, c))
    lines = ["NAME kant_opt", "OBJSENSE", f"    {'MAX' if aim.sense == 'max' else 'MIN'}", "ROWS", " N objective"]
    lines += [f" {_MPS_SENSE[sense]} {name}" for name, sense in zip(rows, program.senses, strict=True)]
    lines += [f" {_MPS_SENSE[sense]} {name}" for name, _, sense, _ in extra]
    lines.append("COLUMNS")
    for whole in (1, 0):
        if whole:
            lines.append("    MARKER 'MARKER' 'INTORG'")
        for name, column, integer in zip(names, columns, program.integer, strict=True):
            if integer == whole:
                lines += [f"    {name} {row} {c}" for row, c in column or [("objective", 0)]]
        if whole:
            lines.append("    MARKER 'MARKER' 'INTEND'")
    lines.append("RHS")
    if aim.constant:
        lines.append(f"    RHS objective {-aim.constant}")  # the format subtracts it
    lines += [f"    RHS {name} {rhs}" for name, rhs in zip(rows, program.rhs, strict=True) if rhs]
    lines += [f"    RHS {name} {rhs}" for name, _, _, rhs in extra if rhs]
    lines.append("BOUNDS")
    for name, lo, up in zip(names, program.lower, program.upper, strict=True):
        lines += [f" LO BOUND {name} {lo}", f" UP BOUND {name} {up}"]
    return "\n".join([*lines, "ENDATA", ""])


def to_cp_sat(program: Program, level: int = 0, fixed: Sequence[int] = ()) -> str:
    """Return the program as the text of a CP-SAT `CpModelProto`; arguments as for `to_lp`.

    OR-Tools reads it with `CpModel().proto.parse_text_format(text)`, its `sat_runner` from a file `.pbtxt`. Names stay
    as they are. Raises InputError where a variable is continuous: CP-SAT has none.
    """
    if not all(program.integer):
        name = program.names[program.integer.index(0)]
        raise InputError(f"variable {name!r} is continuous, and CP-SAT has none", way_out="write LP or MPS")
    aim = program.levels[level]
    sign = -1 if aim.sense == "max" else 1
    lines = [f"name: {_quoted(f'kant_opt: {aim.name}')}"]
    for name, lo, up in zip(program.names, program.lower, program.upper, strict=True):
        lines.append(f"variables {{ name: {_quoted(name)} domain: {_list((lo, up))} }}")
    for r, sense in enumerate(program.senses):
        lines.append(_cp_sat_row(program.row_names[r], list(program.terms_of(r)), sense, program.rhs[r]))
    lines += [_cp_sat_row(*row) for row in _fixing(program, fixed)]
    columns, coefficients = _list(aim.terms), _list(sign * c for c in aim.terms.values())
    lines.append(
        f"objective {{ vars: {columns} coeffs: {coefficients} offset: {sign * aim.constant} scaling_factor: {sign} }}"
    )
    return "\n".join([*lines, ""])


def _cp_sat_row(name: str, terms: Sequence[tuple[int, int]], sense: Sense, rhs: int) -> str:
    domain = (-_FAR if sense is Sense.LE else rhs, _FAR - 1 if sense is Sense.GE else rhs)
    columns, coefficients = _list(i for i, _ in terms), _list(c for _, c in terms)
    linear = f"linear {{ vars: {columns} coeffs: {coefficients} domain: {_list(domain)} }}"
    return f"constraints {{ name: {_quoted(name)} {linear} }}"


def _list(numbers: Iterable[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _quoted(name: str) -> str:
    return f'"{name.translate(_QUOTED)}"'


def _fixing(program: Program, fixed: Sequence[int]) -> Iterator[tuple[str, list[tuple[int, int]], Sense, int]]:
    for i, (level, value) in enumerate(zip(program.levels, fixed, strict=False)):
        sense = Sense.GE if level.sense == "max" else Sense.LE
        yield f"level_{i}_{_plain(level.name)}", list(level.terms.items()), sense, value - level.constant


def _sum(name: str, terms: Iterable[tuple[str, int]], end: str = "") -> Iterator[str]:
    """Yield the lines of one named sum; an empty one says 0 of the variable that is always 1."""
    shown = [f"{'-' if c < 0 else '+'} {abs(c)} {variable}" for variable, c in terms if c] or ["+ 0 one"]
    for at in range(0, len(shown), _TERMS_A_LINE):
        head = f" {name}: " if at == 0 else "   "
        tail = end if at + _TERMS_A_LINE >= len(shown) else ""
        yield head + " ".join(shown[at : at + _TERMS_A_LINE]) + tail


def _plain(name: str) -> str:
    """Return a name of letters, digits and underscores that no reader takes for a number."""
    plain = _ODD.sub("_", name)
    return f"n_{plain}" if not plain or plain[0] in "0123456789eE_" else plain


def _names(names: Sequence[str]) -> list[str]:
    """Return plain names, made unique by their position where two are alike."""
    plain = [_plain(name) for name in names]
    taken: set[str] = {"one", "objective"}
    for i, name in enumerate(plain):
        if name in taken:
            plain[i] = f"{name}__{i}"
        taken.add(plain[i])
    return plain
