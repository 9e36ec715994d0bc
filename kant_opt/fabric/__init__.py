"""The fabric: graph, levels, domains; generators and the topologies that ship with the project."""

from kant_opt.fabric.build import build_fabric
from kant_opt.fabric.describe import Description, check_levels, describe
from kant_opt.fabric.fabric import Fabric, Path
from kant_opt.fabric.generators import GENERATORS, fat_tree, irregular, leaf_spine, nvl72_racks, rail_optimised
from kant_opt.fabric.node_link import node_link
from kant_opt.fabric.topologies import list_topologies, load_topology

__all__ = [
    "GENERATORS",
    "Description",
    "Fabric",
    "Path",
    "build_fabric",
    "check_levels",
    "describe",
    "fat_tree",
    "irregular",
    "leaf_spine",
    "list_topologies",
    "load_topology",
    "node_link",
    "nvl72_racks",
    "rail_optimised",
]
