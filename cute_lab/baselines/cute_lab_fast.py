"""This project with fast_math: approximate functions and reciprocals."""

from __future__ import annotations

from cute_lab.baselines import Absent, Baseline, Case, Ready
from cute_lab.baselines import cute_lab as exact


def prepare(case: Case) -> Ready:
    lab = case.lab.with_fast_math()
    if case.lab.fast_math or lab.source == case.lab.source:
        raise Absent("its code is the same with and without fast_math")
    ready = exact.prepare(Case(lab, case.device))
    return Ready(ready.run, f"{ready.note}, approximate functions", ready.trains, ready.why_not)


BASELINE = Baseline("cute_lab, fast_math", 1, prepare)
