"""A workbench for Linux CPU schedulers.

>>> import fairground
>>> run = fairground.simulate("hogs:3", sched="cfs@6.1", cpus=2, duration="1s")
>>> run.groups.to_polars()            # or .to_pandas(), or pyarrow.table(run.groups)
>>> run.events.to_polars()

A scheduler is a compiled sched_ext object and nothing else. The names of schedulers, workloads, machines and settings are
those of the command line, and so are the messages of errors (:class:`Error`). The same arguments give the same bytes.
"""

from fairground._native import VERSION as __version__
from fairground._native import Error
from fairground._command import command, compare, diagnose, follow, reproduce, run_on
from fairground._extras import MissingExtra
from fairground._points import Point, grid
from fairground._report import Report, ReportTable
from fairground._run import Contention, Run, read, simulate
from fairground._sweep import Sweep, sweep
from fairground._table import Table
from fairground._words import SchedulerInfo, WorkloadInfo, schedulers, workloads

__all__ = [
    "Contention",
    "Error",
    "MissingExtra",
    "Point",
    "Report",
    "ReportTable",
    "Run",
    "SchedulerInfo",
    "Sweep",
    "Table",
    "WorkloadInfo",
    "__version__",
    "command",
    "compare",
    "diagnose",
    "follow",
    "grid",
    "read",
    "reproduce",
    "run_on",
    "schedulers",
    "simulate",
    "sweep",
    "workloads",
]
