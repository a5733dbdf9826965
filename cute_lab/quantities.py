"""Numbers in words: digits that carry meaning, nothing rounded to none or to all."""

from __future__ import annotations

import re

EIGHTHS = " ▏▎▍▌▋▊▉█"


def number(value: int) -> str:
    return f"{value:,}"


def count(value: int, noun: str) -> str:
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def short(value: float) -> str:
    """4.8e-7 and not 4.8000000000e-07."""
    return re.sub(r"e([+-])0*(\d)", lambda m: f"e{m[1].replace('+', '')}{m[2]}", f"{value:.3g}")


def exact(value: float) -> str:
    """Digits enough to see two nearly equal values differ."""
    return f"{value:.8g}"


def percent(share: float) -> str:
    value = 100 * share
    if 0 < value < 0.1 or 99.9 < value < 100:
        rest = min(value, 100 - value)
        digits = next((d for d in range(2, 13) if round(rest, d) > 0), 13)
        return f"{value:.{digits}f} %"
    return f"{value:.1f} %".replace(".0 %", " %")


def bar(share: float, width: int = 12) -> str:
    eighths = round(min(max(0.0, share), 1.0) * width * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()
