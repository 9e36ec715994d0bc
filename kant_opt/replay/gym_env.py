"""A Gymnasium environment over the loop of replays: a learned policy decides who starts next."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np

from kant_opt.errors import BackendUnavailable, InputError
from kant_opt.fabric import load_topology
from kant_opt.io.traces import Trace
from kant_opt.planning import ORDERS
from kant_opt.planning.board import Board
from kant_opt.planning.ticket import Claim, Ticket
from kant_opt.planning.timeline import instants
from kant_opt.replay.spaces import nodes_used, placing_backend
from kant_opt.replay.stage import Stage, fabric_stage
from kant_opt.replay.workload import Walltimes, workload
from kant_opt.schema import FabricSpec, Node

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise BackendUnavailable("a learned policy needs gymnasium: pip install 'kant-opt[gym]'") from None

Observation = dict[str, Any]
"""Name -> array of float32."""

FEATURES = ("present", "gpus", "pods", "walltime", "waited", "fits")
"""Columns of the queue's window, each in 0 .. 1: whether a job is there, its GPUs of the cluster's, its pods of the
cluster's GPUs, its walltime and its wait on a logarithmic scale, whether it fits now."""

_LONGEST_S = 10 * 365 * 86_400
"""A time this long is 1 on the scale."""


class QueueEnv(gymnasium.Env[Observation, np.int64]):
    """An episode replays a trace, or some jobs of it; each step decides which waiting job starts next, or none.

    Actions: `i < window` starts the i-th job of the queue now; `window` lets time go on to the next event. So does a
    job that is not there or does not fit: `info["action_mask"]` tells which ones do. Where nothing would happen any
    more, the first job that fits starts by itself. Who decides is asked only when some job of the window fits.

    Observation: `queue` (window, 6), see FEATURES; `free` (domains of the innermost level, or 1), the share of each
    one's GPUs that is free; `behind` (1,), the jobs that wait beyond the window, as a share of the episode's.

    Reward: minus the GPU-seconds that jobs waited since the last step. An episode's sum is therefore exactly
    -sum(GPUs x wait) over its jobs, and no episode ends before all have started.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self,
        trace: Trace,
        cluster: str | Path | tuple[FabricSpec, Sequence[Node]],
        *,
        window: int = 16,
        num_jobs: int | None = None,
        order: str = "fifo",
        backend: str = "e-binpack",
        walltimes: Walltimes = "asked",
        arrivals: float = 1.0,
    ) -> None:
        """Make an environment on a topology, by name or path, or a fabric and its nodes.

        With `num_jobs` an episode is that many consecutive jobs, from a place drawn by the seed of `reset`. The other
        arguments are those of `replay`. Costs what reading a request of all jobs costs.
        """
        if window < 1:
            raise InputError(f"a window of {window} jobs", way_out="give at least 1")
        if num_jobs is not None and num_jobs < 1:
            raise InputError(f"episodes of {num_jobs} jobs", way_out="give at least 1, or none for the whole trace")
        placing_backend(backend)
        ORDERS[order]  # raises UnknownName, as above
        spec, nodes = cluster if isinstance(cluster, tuple) else load_topology(cluster)
        self.stage: Stage = fabric_stage(workload(trace, walltimes=walltimes, arrivals=arrivals), spec, nodes)
        if not self.stage.tickets:
            raise InputError("no job of it can be replayed", place=trace.name, way_out="name a larger fabric")
        self.window, self.num_jobs, self.order, self.backend = window, num_jobs, order, backend
        paths = [node.path for node in self.stage.nodes]
        domains = {path: i for i, path in enumerate(sorted(set(paths)))}
        self._domain = np.array([domains[path] for path in paths], dtype=np.int64)
        gpus = np.array([node.gpus for node in self.stage.nodes], dtype=np.int64)
        self._domain_milli = 1000 * np.bincount(self._domain, weights=gpus, minlength=len(domains))
        self.action_space = spaces.Discrete(window + 1)
        self.observation_space = spaces.Dict(
            {
                "queue": _shares((window, len(FEATURES))),
                "free": _shares((len(domains),)),
                "behind": _shares((1,)),
            }
        )
        self._board: Board | None = None

    # -- what gymnasium asks for -------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode. Equal seeds give equal episodes under equal actions."""
        super().reset(seed=seed)
        tickets, size = self.stage.tickets, self.num_jobs or len(self.stage.tickets)
        first = int(self.np_random.integers(max(1, len(tickets) - size + 1)))
        self._tickets = tickets[first : first + size]
        self._submits = [ticket.submit for ticket in self._tickets]
        self._board = Board(self.stage.space(self.backend, int(self.np_random.integers(1 << 31))), ORDERS[self.order]())
        self._instants: Iterator[int] = instants(self._board, self._tickets, start=self._submits[0])
        self._over = next(self._instants, None) is None
        self._slots: list[tuple[Ticket, Claim | None]] = []
        self._go_on(self._board)
        return self._observation(self._board), self._info(self._board)

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Start the job of the window that `action` names, or let time go on."""
        board = self._board
        if board is None or self._over:
            raise gymnasium.error.ResetNeeded("the episode is over, or has not begun: call reset")
        chosen = self._slots[int(action)][1] if 0 <= int(action) < len(self._slots) else None
        waited = 0
        if chosen is not None:
            board.start(chosen, backfilled=chosen.ticket is not board.head())
        else:
            waited = self._pass(board)
        waited += self._go_on(board)
        return self._observation(board), -float(waited), self._over, False, self._info(board)

    @property
    def starts(self) -> dict[str, int]:
        """Second of its start by job, of those that have started in this episode."""
        return {} if self._board is None else {run.ticket.name: run.start for run in self._board.runs}

    # -- time --------------------------------------------------------------------------------------

    def _go_on(self, board: Board) -> int:
        """Let time pass until some job of the window fits, or the episode is over; return GPU-seconds waited."""
        waited = 0
        self._look(board)
        while not self._over and not any(claim for _, claim in self._slots):
            waited += self._pass(board)
            self._look(board)
        return waited

    def _pass(self, board: Board) -> int:
        """Go to the next instant and return the GPU-seconds waited until then."""
        queue = board.queue()
        if queue and not board.running and bisect_right(self._submits, board.now) == len(self._submits):
            claims = (board.space.at(ticket, board.now) for ticket in queue)
            if (claim := next(filter(None, claims), None)) is not None:
                board.start(claim)  # else nobody would ever start again, and waiting would cost nothing
                return 0
        before = board.now
        self._over = next(self._instants, None) is None
        return 0 if self._over else sum(ticket.gpus for ticket in queue) * (board.now - before)

    def _look(self, board: Board) -> None:
        """See who is in the window, and who of them fits."""
        window = board.queue()[: self.window]
        hopeful = set(board.space.hopeful(window, board.now))
        self._slots = [(t, board.space.at(t, board.now) if t in hopeful else None) for t in window]
        if len(board.runs) == len(self._tickets):
            self._over = True  # what still runs delays nobody

    # -- what is seen ------------------------------------------------------------------------------

    def _observation(self, board: Board) -> Observation:
        gpus = self.stage.gpus
        queue = np.zeros((self.window, len(FEATURES)), dtype=np.float32)
        for i, (ticket, claim) in enumerate(self._slots):
            pods = sum(part.target for part in ticket.gang.parts) if ticket.gang else 1
            length = _scaled(ticket.length) if ticket.length is not None else 1.0
            queue[i] = (1, ticket.gpus / gpus, pods / gpus, length, _scaled(board.now - ticket.submit), bool(claim))
        used = np.zeros(len(self._domain_milli))
        for run in board.running.values():
            for node, milli in nodes_used(run.claim.taken or ()):
                used[self._domain[node]] += milli
        free = 1 - used / np.maximum(self._domain_milli, 1)
        behind = (len(board.queue()) - len(self._slots)) / len(self._tickets)
        return {
            "queue": np.clip(queue, 0, 1),
            "free": np.clip(free, 0, 1).astype(np.float32),
            "behind": np.array([behind], dtype=np.float32),
        }

    def _info(self, board: Board) -> dict[str, Any]:
        mask = np.zeros(self.window + 1, dtype=np.int8)
        mask[: len(self._slots)] = [claim is not None for _, claim in self._slots]
        mask[self.window] = 1
        waits = [run.start - run.ticket.submit for run in board.runs]
        return {
            "time_s": board.now,
            "action_mask": mask,
            "jobs": tuple(ticket.name for ticket, _ in self._slots),
            "mean_wait_s": sum(waits) / len(waits) if waits else 0.0,
        }


def _shares(shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(0.0, 1.0, shape, np.float32)


def _scaled(seconds: int) -> float:
    return min(1.0, log1p(seconds) / log1p(_LONGEST_S))
