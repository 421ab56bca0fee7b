"""The benchmarks: what a dataspace costs here, side by side with the same index on syndicate-py.

``python -m benchmarks`` measures and writes ``RESULTS.md``.  In reading order: ``cases`` (what is measured,
and what is to be reached), ``dataspace`` (our side of each workload), ``insight`` (what single mechanisms of
ours cost), ``peers/`` (the other side, run by a Python of its own), ``measure`` (one figure in one fresh
process, the sides in turn), ``report`` (the tables).

The relay: ``relay`` and ``stopped`` (the workloads), ``load`` (what is sent to a broker, and what comes back),
``server`` (the broker), ``follower`` and ``watched`` (a consumer, and a broker under a profiler, each a process),
``relay_report`` (the tables).

The languages: ``bloom`` and ``dedalus``, each with ``_cases`` (what is measured, published figures, what is to be
reached) and ``_ours`` (our side of each workload); ``graphs``, ``closure_side``, ``recursion`` (what all engines have
in common); ``sides`` (the command, and the sides of a case in turn, which ``flow`` shares).

Machines drift by a factor of two while they measure, both sides alike.  Hence the sides alternate, each
figure is the median of several rounds, and what counts is the ratio.
"""
