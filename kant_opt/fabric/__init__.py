"""The fabric: graph, levels, domains; generators and the topologies that ship with the project."""

from kant_opt.fabric.build import build_fabric
from kant_opt.fabric.fabric import Fabric, Path

__all__ = ["Fabric", "Path", "build_fabric"]
