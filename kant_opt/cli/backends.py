"""`kant-opt backends`: who can place."""

from __future__ import annotations

SUMMARIES = {
    "search": "E-Binpack, then ruin and recreate of its whole-node gangs; `auto` for gangs known together",
    "e-binpack": "E-Binpack: each gang on the fewest domains, the tightest first; `auto` for gangs one by one",
    "e-spread": "E-Spread: inference spread inside its zone, all else E-Binpacked outside it",
    "first-fit": "baseline: the first nodes in order of their paths that have room",
    "best-fit": "baseline: the nodes with the least left over, GPUs and CPUs weighing half each",
    "binpack": "baseline: the nodes used most",
    "spread": "baseline: the emptiest nodes, pods dealt out one by one",
    "random": "baseline: nodes drawn by lot (--seed)",
    "cp-sat": "exact: OR-Tools CP-SAT on the per-node program, starting from E-Binpack",
    "milp": "exact: HiGHS through PuLP, the same program",
    "milp-cbc": "exact: CBC through PuLP, a second opinion",
}


def backends() -> None:
    """List the backends that `place --backend` takes.

    \b
    Examples:
      kant-opt backends
      kant-opt place cluster/ --backend first-fit
    """
    from kant_opt.backends import BACKENDS
    from kant_opt.cli.page import Column, Page

    rows = []
    for name, backend in BACKENDS.items():
        missing = "" if backend.available() else " (not installed)"
        rows.append([name, SUMMARIES.get(name, backend.__doc__ or "").splitlines()[0] + missing])
    Page(everything=True).table([Column("backend"), Column("what it does", wrap=True)], rows)
