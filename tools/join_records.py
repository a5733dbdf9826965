"""Suite records of several runs as one file for tests/records, without the error maps of what passed.

python tools/join_records.py OUT.json NAME "ABOUT" RUN.json [RUN.json ...]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from cute_lab.record import SCHEMA, Record
from cute_lab.suite_record import SuiteRecord, load


def slim(record: Record) -> Record:
    bench = record.bench
    assert bench is not None
    timings = tuple(replace(t, accuracy=tuple(replace(a, where=()) if a.ok else a for a in t.accuracy)) for t in bench.timings)
    return replace(record, bench=replace(bench, timings=timings))


def main() -> None:
    out, name, about, *paths = sys.argv[1:]
    suites = [load(path) for path in paths]
    records = tuple(slim(r) for suite in suites if isinstance(suite, SuiteRecord) for r in suite.records)
    SuiteRecord(SCHEMA, "suite", name, about, records).save(out)
    print(f"{out}: {len(records)} records, {Path(out).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
