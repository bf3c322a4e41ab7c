"""All workloads, by name, in the order in which they are run."""

from . import attention, calls, elementwise, learning, loops, rows, vision

WORKLOADS = {
    workload.name: workload
    for module in (calls, elementwise, rows, learning, attention, vision, loops)
    for workload in module.WORKLOADS
}
