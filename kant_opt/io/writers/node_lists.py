"""Plain CSV: which podset has how many pods on which node."""

from __future__ import annotations

import csv
import io

from kant_opt.io.writers.writer import WRITERS, Written
from kant_opt.schema import Placement, Request


class NodeLists:
    """Columns job, podset, node, pods, gpus; gpus are indices, pod by pod joined by "|", within a pod by " "."""

    name = "csv"
    gives = "a table: job,podset,node,pods,gpus"

    def write(self, request: Request, placement: Placement) -> Written:
        """Return the table in the order of the ranks; nothing is lost."""
        del request
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(("job", "podset", "node", "pods", "gpus"))
        for job in placement.jobs:
            for part in job.pods:
                gpus = "|".join(" ".join(map(str, pod)) for pod in part.gpus)
                table.writerow((job.job, part.podset, part.node, part.count, gpus))
        return text.getvalue(), ()


WRITERS.add("csv", NodeLists())
