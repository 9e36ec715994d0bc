"""Arrays made once from the fabric and the request, and the free room that placements change."""

from kant_opt.view.cluster import NOT_COUNTED, Cluster, Shape, shape_of
from kant_opt.view.free import Free, GpuIndices
from kant_opt.view.gang import Gang, Part, compile_gang, compile_gangs, domain_counts, living_pods
from kant_opt.view.quota import Quotas
from kant_opt.view.room import capacities, open_nodes
from kant_opt.view.tree import Ints, Mask, Tree

__all__ = [
    "NOT_COUNTED",
    "Cluster",
    "Free",
    "Gang",
    "GpuIndices",
    "Ints",
    "Mask",
    "Part",
    "Quotas",
    "Shape",
    "Tree",
    "capacities",
    "compile_gang",
    "compile_gangs",
    "domain_counts",
    "living_pods",
    "open_nodes",
    "shape_of",
]
