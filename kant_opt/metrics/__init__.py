"""What a placement is worth: the objective terms, computed from the placement alone, and reports beside them."""

from kant_opt.metrics.blocks import block_sum
from kant_opt.metrics.cluster import ClusterMeasures, LargestGang, before_and_after, cluster_measures, largest_gangs
from kant_opt.metrics.jtted import JobStretch, job_stretch
from kant_opt.metrics.measure import MEASURES, Measure, measure
from kant_opt.metrics.placed import Placed
from kant_opt.metrics.span import JobSpan, job_spans
from kant_opt.metrics.traffic import traffic_by_job, traffic_by_level
from kant_opt.metrics.unusable import UnusableShare, expected_unusable

__all__ = [
    "MEASURES",
    "ClusterMeasures",
    "JobSpan",
    "JobStretch",
    "LargestGang",
    "Measure",
    "Placed",
    "UnusableShare",
    "before_and_after",
    "block_sum",
    "cluster_measures",
    "expected_unusable",
    "job_spans",
    "job_stretch",
    "largest_gangs",
    "measure",
    "traffic_by_job",
    "traffic_by_level",
]
