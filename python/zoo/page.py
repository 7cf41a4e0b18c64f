"""Writes the table of docs/results/zoo.md from docs/results/zoo.json: python -m zoo.page."""

from __future__ import annotations

import json
import re
from typing import Any

from .__main__ import RESULTS, WAYS
from .networks import networks


def cell(found: dict[str, Any] | None, way: str) -> str:
    """Return what a way did: ok, the first step that failed, or nothing if it was not tried."""
    if found is None:
        return ""
    failed = next((key for key, value in found.items() if isinstance(value, str) and value.startswith("error")), None)
    return "ok" if failed is None else "no file" if failed == "export" else f"{failed} failed"


def row(name: str, r: dict[str, Any]) -> str:
    file = next((r[w] for w in ("tracing", "dynamo") if isinstance(r.get(w), dict) and r[w].get("export") is True), {})
    layers = file.get("layers")
    named = f"{layers['named']} of {layers['default']}" if isinstance(layers, dict) else ""
    gradient = f"{file['gradient']:.0e}" if isinstance(file.get("gradient"), float) else ""
    return f"| {name} | {' | '.join(cell(r.get(w), w) for w in WAYS)} | {named} | {gradient} |"


def main() -> None:
    found = json.loads(RESULTS.read_text("utf-8"))
    head = ["| network | " + " | ".join(WAYS) + " | layers | gradient |", "| --- | --- | --- | --- | --- | --- |"]
    table = [*head, *(row(name, found[name]) for name in networks() if name in found)]
    count = sum(any(cell(r.get(w), w) == "ok" for w in WAYS) for r in found.values())
    page = RESULTS.with_suffix(".md")
    text = re.sub(r"<!-- table: zoo -->.*", lambda _: "<!-- table: zoo -->\n\n" + "\n".join(table) + "\n", page.read_text("utf-8"), flags=re.S)
    text = re.sub(r"\d+ of the \d+ networks that were tried, of \d+", f"{count} of the {len(found)} networks that were tried, of {len(networks())}", text)
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
