"""Run folders: what a finished or unfinished study wrote, and its comparison with others."""

from __future__ import annotations

import csv
import html
import json
import os
from pathlib import Path
from typing import Any

from ._command import Error, call

# Columns of scores.csv that contain numbers.
NUMBERS = ("depth", "value", "low", "high", "null", "n")


def table(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a pandas DataFrame, or unchanged if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


class Run:
    """The folder of a run of a study, with its scores, its report and its failures."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not (self.folder / "run.json").is_file():
            raise Error(f"{self.folder} is not a run folder: it has no run.json")

    @property
    def record(self) -> dict[str, Any]:
        """run.json: versions, hashes, layers, what was skipped and why, what failed."""
        out: dict[str, Any] = json.loads((self.folder / "run.json").read_text("utf-8"))
        return out

    @property
    def scores(self) -> Any:
        """The rows of scores.csv: a pandas DataFrame, or a list of dicts without pandas.

        A value that does not apply is an empty string, or NaN (None without pandas) for numbers.
        """
        return table(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        path = self.folder / "scores.csv"
        if not path.is_file():
            raise Error(f"{self.folder} has no scores yet: the run has not finished")
        with open(path, newline="", encoding="utf-8") as f:
            rows: list[dict[str, Any]] = list(csv.DictReader(f))
        for row in rows:
            for name in NUMBERS:
                text = row[name]
                row[name] = None if text == "" else int(text) if name in ("depth", "n") else float(text)
        return rows

    @property
    def report(self) -> Path:
        """The path of the report, which can be opened in any browser."""
        return self.folder / "report.html"

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The models, data sets and cells that failed, each with its error."""
        return list(self.record.get("failed") or [])

    @property
    def samples(self) -> Any:
        """The values of single samples as a pandas DataFrame.

        If the study ran with samples=True, they cover all samples and all layers; otherwise the
        first 500 samples, the predictions and the last layer.
        """
        path = self.folder / "samples.parquet"
        if not path.is_file():
            raise Error(f"{self.folder} has no values of single samples: measure with samples=True")
        try:
            import pandas

            return pandas.read_parquet(path)
        except ImportError:
            raise Error(f"reading {path} needs the packages pandas and pyarrow: pip install pandas pyarrow") from None

    @property
    def wrong_samples(self) -> Any:
        """The samples that a model gets wrong, those that cost most first: the table failures.csv.

        kind is "broken" (right on the clean image and wrong on the transformed one), "changed" (another
        class, of a sample without a label) or "wrong" (wrong on the clean image).
        """
        return table(call(["failures", str(self.folder), "--json"])["failures"])

    def diff(self, other: Run | str | os.PathLike[str], all: bool = False) -> Any:
        """Return the scores that differ beyond chance between this run and a newer one, or all."""
        newer = other.folder if isinstance(other, Run) else Path(other)
        found = call(["diff", str(self.folder), str(newer), "--json", *(["--all"] if all else [])])
        return table(found["differences"] if isinstance(found, dict) else found or [])

    def breaking_point(self, *tolerances: str) -> Any:
        """Return up to which strength of each transformation scores keep to tolerances: a row for each curve.

        A tolerance is "SCORE >= NUMBER" or "SCORE <= NUMBER", such as "effective-invariance.ei@tilt >= 0.8";
        with %, as in "accuracy.moved >= 95%", it is relative to the score without the
        transformation. strength is None before the smallest strength that was tried, and beyond the
        largest: see state.
        """
        return table(call(["breaking-point", str(self.folder), "--json", *(f"--tolerance={t}" for t in tolerances)]))

    def to_wandb(self, project: str | None = None, folder: str | os.PathLike[str] | None = None, mode: str = "offline") -> list[str]:
        """Log each model as a run of Weights & Biases, and return the folders of these runs.

        project is by default the study's name. The folder wandb is made in folder, by default the
        current one. mode is that of wandb.init; "wandb sync" sends runs that were logged offline.
        """
        from . import _wandb

        return _wandb.log(self, project, folder, mode)

    def __repr__(self) -> str:
        count = f"{len(self._rows())} scores" if (self.folder / "scores.csv").is_file() else "not finished"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<noether.Run {str(self.folder)!r}: {count}{failed}>"

    def _repr_html_(self) -> str:
        """The report in a frame without access to the notebook, or a table if scripts are disabled."""
        page = html.escape(self.report.read_text("utf-8"), quote=True) if self.report.is_file() else ""
        return (f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{page}" style="width:100%;height:640px;border:1px solid #ccc"></iframe>'
                f"<noscript>{self._small_table()}</noscript>")

    def _small_table(self) -> str:
        """Return at most twenty scores of predictions (rows without a layer) as an HTML table."""
        columns = ("model", "data", "transform", "parameter", "measure", "statistic", "value", "low", "high")
        rows = [r for r in self._rows() if r["layer"] == ""][:20] if (self.folder / "scores.csv").is_file() else []

        def cell(value: Any) -> str:
            return "" if value is None else f"{value:.3f}" if isinstance(value, float) else html.escape(str(value))

        head = "".join(f"<th>{c}</th>" for c in columns)
        body = "".join("<tr>" + "".join(f"<td>{cell(r[c])}</td>" for c in columns) + "</tr>" for r in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
