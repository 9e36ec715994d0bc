"""Requests with nodes and jobs alike, for what counts them instead of telling them apart."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from hypothesis import strategies as st

from kant_opt.schema import Request
from kant_opt.testing.strategies import requests

Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def alike_requests(
    draw: Draw, *, max_nodes: int = 3, max_jobs: int = 3, copies: int = 4, without: Collection[str] = ()
) -> Request:
    """Draw a request of `requests`, each node and each job of it up to `copies` times.

    Copies are empty and in no node list, group or quarrel with other jobs; otherwise all rules are theirs too.
    """
    request: Request = draw(requests(max_nodes=max_nodes, max_jobs=max_jobs, without=without))
    often = st.sampled_from((*range(1, copies + 1), copies))
    nodes = [
        node.model_copy(update={"name": f"{node.name}{'b' * i}"}) for node in request.nodes for i in range(draw(often))
    ]
    jobs = [job.model_copy(update={"name": f"{job.name}{'b' * i}"}) for job in request.jobs for i in range(draw(often))]
    return request.model_copy(update={"nodes": tuple(nodes), "jobs": tuple(jobs)})
