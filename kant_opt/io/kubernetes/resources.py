"""What pods ask for and nodes offer: exact quantities, GPUs by their resource names."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from kant_opt.errors import InputError
from kant_opt.io.objects import Object
from kant_opt.units import MILLI, quantity, whole

GPU_RESOURCES = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "huawei.com/Ascend910",
    "alibabacloud.com/gpu-count",
)
"""Resources of which one unit is one whole device."""

_PLAIN = ("cpu", "memory", "pods", "ephemeral-storage", "alibabacloud.com/gpu-milli", *GPU_RESOURCES)

Amounts = dict[str, Decimal]


def amounts(holder: Object, key: str) -> Amounts:
    """Return the resource list in field `key` of `holder`, exact. Raises InputError, also for amounts below 0."""
    fields = holder.child(key)
    return {name: amount(fields, name) for name in holder.amounts(key)}


def amount(holder: Object, key: str) -> Decimal:
    """Return the quantity in field `key` of `holder`, exact. Raises InputError, also for one below 0."""
    text = holder.amount(key)
    try:
        value = _quantity(text)
    except InputError as error:
        raise error.within(f"{holder.place}.{key}") from None
    if value < 0:
        raise holder.fault(key, f"{text!r} is below 0", "amounts start at 0")
    return value


_quantity = lru_cache(maxsize=4096)(quantity)


def effective_requests(pod: Object) -> Amounts:
    """Return what a pod holds on its node.

    The larger of (a) all containers and sidecars together and (b) each init step with the sidecars started before it,
    plus overhead. A sidecar is an init container with restartPolicy Always. Requests of the pod as a whole replace the
    sum for the resources they name.
    """
    spec = pod.child("spec")
    running = _sum(_asked(c) for c in spec.children("containers"))
    sidecars: Amounts = {}
    steps: list[Amounts] = []
    for container in spec.children("initContainers"):
        asked = _asked(container)
        if container.text("restartPolicy") == "Always":
            sidecars = _sum((sidecars, asked))
        else:
            steps.append(_sum((sidecars, asked)))
    most = _sum((running, sidecars))
    for step in steps:
        most = {name: max(most.get(name, Decimal(0)), step.get(name, Decimal(0))) for name in most | step}
    if "resources" in spec:
        most |= _asked(spec)
    return _sum((most, amounts(spec, "overhead")))


def num_gpus(held: Amounts) -> int:
    """Return whole devices, a fraction rounded up."""
    return sum(whole(held[name], up=True) for name in GPU_RESOURCES if name in held)


def gpu_resource(held: Amounts) -> str:
    """Return the name of the first GPU resource with an amount, empty where there is none."""
    return next((name for name in GPU_RESOURCES if held.get(name)), "")


def cpu_and_memory(held: Amounts, *, up: bool) -> dict[str, int]:
    """Return the amounts among `cpu_milli` and `memory_bytes` that are given."""
    found = {}
    if "cpu" in held:
        found["cpu_milli"] = whole(held["cpu"] * MILLI, up=up)
    if "memory" in held:
        found["memory_bytes"] = whole(held["memory"], up=up)
    return found


def cuts_a_gpu(name: str) -> bool:
    """Return whether a resource is a part of a GPU that cannot be told in whole GPUs: MIG and time slices."""
    return name.startswith("nvidia.com/mig-") or name.endswith("gpu.shared")


def not_counted(held: Amounts) -> list[str]:
    """Return the names of resources with an amount that kant_opt does not count."""
    return sorted(n for n, v in held.items() if v and n not in _PLAIN and not n.startswith("hugepages-"))


def _asked(container: Object) -> Amounts:
    """Requests; a limit stands in for a request that is not given, as the API server does it."""
    resources = container.child("resources")
    return amounts(resources, "limits") | amounts(resources, "requests")


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, Decimal(0)) + value
    return total
