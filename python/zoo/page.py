"""Writes the tables of docs/results/zoo.md from docs/results/zoo.json: python -m zoo.page."""

from __future__ import annotations

import json
from typing import Any

from .__main__ import RESULTS, WAYS
from .check import rounding
from .networks import ordered

# The steps of a way by a file, and of the worker.
STEPS = {way: ("layers", "run", "gradient") if way == "worker" else ("export", "layers", "run", "gradient") for way in WAYS}


def problem(found: dict[str, Any], way: str) -> str | None:
    """Return why a way does not work for a network: "" if it does, None if it was not tried."""
    if way not in found:
        return found.get("problem")
    for step in STEPS[way]:
        value = found[way].get(step)
        if value is None:
            return f"{step}: {found[way].get('late') or found.get('problem') or 'not finished'}"
        if isinstance(value, str):
            return f"{step}: {value.removeprefix('error: ')}"
        if step == "gradient" and isinstance(value, float) and not value <= rounding(found):
            double = found[way].get("gradient in float64", "not computed")
            if not isinstance(double, float) or not double <= 1e-6:
                return f"gradient: {value:.0e} from PyTorch's, which differs by {rounding(found) / 10:.0e} by rounding; in float64 {double}"
        if step == "layers" and value["named"] < value["default"]:
            return f"layers: no names of modules: {', '.join(value.get('others', ['not recorded']))}"
        if step == "run" and value["scores"] == value["undefined"]:
            return "run: no score is defined"
    return ""


def taken(found: dict[str, Any]) -> str | None:
    """Return the way that measure takes for a module: the first with a file, else the worker."""
    return next((way for way in WAYS if way == "worker" or found.get(way, {}).get("export") is True), None)


def cell(found: dict[str, Any], way: str) -> str:
    text = problem(found, way)
    if text is None:
        return ""
    step = text.partition(":")[0]
    return "ok" if text == "" else "no file" if step == "export" else f"{step} fails"


def row(name: str, found: dict[str, Any]) -> str:
    way = taken(found) or ""
    layers = found.get(way, {}).get("layers")
    named = f"{layers['named']} of {layers['default']}" if isinstance(layers, dict) else ""
    gradient = found.get(way, {}).get("gradient")
    numbers = [gradient, found.get("gradient in float32"), found.get("gradient after 1e-6"), found.get(way, {}).get("gradient in float64")]
    texts = [f"{n:.0e}" if isinstance(n, float) else "" for n in numbers]
    return f"| {name} | {' | '.join(cell(found, w) for w in WAYS)} | {named} | {' | '.join(texts)} |"


def tables(found: dict[str, Any]) -> str:
    """Return the numbers by library, the networks, and the reasons for what fails."""
    lines = ["| library | networks tried | one way works | the way that `measure` takes works | tracing | dynamo | worker |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for library in ("torchvision", "timm", "transformers", ""):
        part = [r for name, r in found.items() if name.startswith(library)]
        works = [sum(problem(r, w) == "" for r in part) for w in WAYS]
        any_way = sum(any(problem(r, w) == "" for w in WAYS) for r in part)
        by_measure = sum(problem(r, taken(r) or "worker") == "" for r in part)
        lines.append(f"| {library or 'all'} | {len(part)} | {any_way} | {by_measure} | {' | '.join(map(str, works))} |")
    lines += ["", "| network | tracing | dynamo | worker | layers | gradient | float32 | after 1e-6 | float64 |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    names = [name for name in ordered() if name in found]
    lines += [row(name, found[name]) for name in sorted(names)]
    lines += ["", "## What fails", "", "| network | way | reason |", "| --- | --- | --- |"]
    for name in sorted(names):
        for way in WAYS:
            text = problem(found[name], way)
            if text:
                lines.append(f"| {name} | {way} | {text.replace('|', '¦'):.200} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    found = json.loads(RESULTS.read_text("utf-8"))
    page = RESULTS.with_suffix(".md")
    head, _, _ = page.read_text("utf-8").partition("<!-- tables: zoo -->")
    page.write_text(f"{head}<!-- tables: zoo -->\n\n{tables(found)}", "utf-8")


if __name__ == "__main__":
    main()
