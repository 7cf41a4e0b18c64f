"""Run folders: what a finished or unfinished study wrote, and its comparison with others."""

from __future__ import annotations

import base64
import csv
import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _cache
from ._command import Error, call, flags

# Columns of scores.csv that contain numbers, and those of them that are whole.
NUMBERS = ("depth", "trial", "value", "low", "high", "null", "n", "p", "p_adjusted")
WHOLE = ("depth", "trial", "n")

# Columns of files and commands whose names are those of methods and attributes of a DataFrame, which
# df.transform and df.index are, and their names here.
RENAMED = {"transform": "transformation", "index": "sample_index"}

# The largest picture of a chart in a notebook, in bytes.
LARGEST_CHART = 100_000


def table(rows: list[dict[str, Any]], columns: Sequence[str] = ()) -> Any:
    """Return rows as a pandas DataFrame, or as they are if pandas is not installed.

    columns are those that it has without any row.
    Columns that a DataFrame has methods for get other names. Whole numbers that lack in some rows
    are <NA> there, and other numbers NaN.
    """
    rows = [{RENAMED.get(key, key): value for key, value in row.items()} for row in rows]
    try:
        import pandas
    except ImportError:
        return rows
    found = pandas.DataFrame(rows, columns=None if rows else [RENAMED.get(c, c) for c in columns])
    for name in found.columns:
        kinds = {type(row.get(name)) for row in rows} - {type(None)}
        if kinds <= {int, float}:
            found[name] = found[name].astype("Int64" if kinds <= {int} and name in WHOLE else float)
    return found


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

        The column transform is called transformation. A value that does not apply is an empty string,
        or missing for numbers. parameter has numbers if all parameters are. mean_over is "values"
        for the mean over the values of a transformation, "trials" for one over trials, "values and
        trials" for one over both, and empty for other scores.
        """
        rows = self._scores()
        with open(self.folder / "scores.csv", newline="", encoding="utf-8") as f:
            columns = next(csv.reader(f), [])
        return table(rows, [*columns, "mean_over"])

    def _scores(self) -> list[dict[str, Any]]:
        """Return the rows of scores.csv with numbers as parameters if all are, and the column mean_over."""
        rows = self._rows()
        several = {_curve_of(row) for row in rows if row["parameter"] != ""}
        for row in rows:
            over = ["values"] * (row["parameter"] == "" and _curve_of(row) in several) + ["trials"] * (row["trial"] is None)
            row["mean_over"] = " and ".join(over)
        return _with_numbers(rows)

    def _rows(self) -> list[dict[str, Any]]:
        path = self.folder / "scores.csv"
        if not path.is_file():
            raise Error(f"{self.folder} has no scores yet: the run has not finished")
        with open(path, newline="", encoding="utf-8") as f:
            rows: list[dict[str, Any]] = list(csv.DictReader(f))
        for row in rows:
            for name in NUMBERS:
                text = row.get(name, "")  # earlier versions wrote no p-values
                row[name] = None if text == "" else int(text) if name in WHOLE else float(text)
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
        first 500 samples, the predictions and the last layer. The columns transform and index of
        samples.parquet are called transformation and sample_index.
        """
        path = self.folder / "samples.parquet"
        if not path.is_file():
            raise Error(f"{self.folder} has no values of single samples: measure with samples=True")
        try:
            import pandas

            return pandas.read_parquet(path).rename(columns=RENAMED)
        except ImportError:
            raise Error(f"reading {path} needs the packages pandas and pyarrow: pip install pandas pyarrow") from None

    @property
    def wrong_samples(self) -> Any:
        """The samples that a model gets wrong, those that cost most first: the table failures.csv.

        kind is "broken" (right on the clean image and wrong on the transformed one), "changed" (another
        class, of a sample without a label) or "wrong" (wrong on the clean image).
        """
        return table(call(["failures", str(self.folder), "--json"])["failures"])

    def diff(self, other: Run | str | os.PathLike[str], all: bool = False, models: Mapping[str, str] | None = None) -> Any:
        """Return the scores that differ beyond chance between this run and a newer one, or all: a row for each.

        value, low and high are this run's, new_value, new_low and new_high the other's, and difference
        is the latter minus the former, with its interval. beyond says whether that is without 0.
        models has names of models in the other run for those of this run, where they differ.
        """
        newer = other.folder if isinstance(other, Run) else Path(other)
        pairs = ["--models=" + ",".join(f"{a}={b}" for a, b in models.items())] if models else []
        found = call(["diff", str(self.folder), str(newer), "--json", *pairs, *(["--all"] if all else [])])
        return table(_with_numbers([_flat(d) for d in (found["differences"] if isinstance(found, dict) else found) or []]))

    def curve(self, score: str, model: str | None = None, layer: str | None = None, data: str | None = None) -> Any:
        """Return a score at each value of a transformation's parameter, in order: a row for each value.

        score is "MEASURE.STATISTIC" or "MEASURE.STATISTIC@TRANSFORMATION", such as
        "effective-invariance.ei@tilt". model, layer and data select those of one. Of several trials the
        means are taken.
        """
        name, _, transformation = score.partition("@")
        rows = [r for r in self._rows() if f"{r['measure']}.{r['statistic']}" == name]
        if not rows:
            raise Error(f'the run has no score "{name}": it has {", ".join(sorted({m["measure"] + "." + m["statistic"] for m in self._rows()}))}')
        for column, wanted in (("transform", transformation or None), ("model", model), ("layer", layer), ("data", data)):
            known = sorted({r[column] for r in rows})
            if wanted is not None and wanted not in known:
                raise Error(f'"{name}" has no {RENAMED.get(column, column)} "{wanted}": it has {", ".join(map(repr, known))}')
            rows = [r for r in rows if wanted is None or r[column] == wanted]
        rows = [r for r in rows if r["parameter"] != ""]
        if not rows:
            raise Error(f'"{score}" has no curve: its transformations have no list of values')
        if any(r["trial"] is None for r in rows):
            rows = [r for r in rows if r["trial"] is None]
        order: dict[tuple[Any, ...], int] = {}
        for r in rows:
            order.setdefault(_curve_of(r), len(order))
        rows = sorted(_with_numbers(rows), key=lambda r: (order[_curve_of(r)], r["parameter"] if isinstance(r["parameter"], float) else 0))
        columns = ("model", "layer", "data", "transform", "parameter", "variant", "factor", "value", "low", "high", "null", "n", "warning")
        return table([{c: r[c] for c in columns} for r in rows])

    def breaking_point(self, *tolerances: str) -> Any:
        """Return up to which strength of each transformation scores keep to tolerances: a row for each curve.

        A tolerance is "SCORE >= NUMBER" or "SCORE <= NUMBER", such as "effective-invariance.ei@tilt >= 0.8";
        with %, as in "accuracy.moved >= 95%", it is relative to the score without the
        transformation. strength is None before the smallest strength that was tried, and beyond the
        largest: see state.
        """
        return table(call(["breaking-point", str(self.folder), "--json", *(f"--tolerance={t}" for t in tolerances)]))

    def activations(self, layers: str | Sequence[str] | None = None, *, model: str | None = None, pool: str | None = None, quiet: bool = False) -> Any:
        """Return the activations of a model of the study on its data, clean and transformed, as the function activations does.

        layers are patterns, by default those of the study. model is needed if the study has several.
        """
        from . import _extract

        names = sorted({str(m["name"]) for m in self.record["models"]})
        if model is None and len(names) > 1 or model is not None and model not in names:
            raise Error(f'the study has the models {", ".join(names)}: say which one')
        found = _extract.extract(self.folder / "study.yaml", None, quiet, layers=layers, pool=pool, only=model)
        if len(found) > 1:
            raise Error("the study has several data sets: use the command noether extract")
        return found[0]

    def export(self, to: str, path: str | os.PathLike[str] | None = None, **options: Any) -> str | None:
        """Write the scores for another place, into a file, and return its text if there is no path.

        to is "hf-eval" (a file of .eval_results on the Hugging Face hub), "model-card", "eee" (Every
        Eval Ever), "junit" or "badge" (SVG). options are the flags of "noether export", such as
        model="net", statistic="ei" or dataset="ORGANISATION/NAME". Into a model card that exists the
        section is inserted; a picture is written beside it.
        """
        with _cache.temporary("runs") as folder:
            written = Path(path) if path is not None else folder / "export"
            call(["export", str(self.folder), f"--to={to}", f"--out={written}", *flags(**options)])
            return written.read_text("utf-8") if path is None else None

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
        return f"<noether_ml.Run {str(self.folder)!r}: {count}{failed}>"

    def show(self) -> Report:
        """Return the report, which a notebook shows in a frame. It adds one or two megabytes to the notebook."""
        return Report(self.report)

    def _repr_html_(self) -> str:
        """Charts of the scores, a table of some, and the path of the report."""
        charts = "".join(self._chart(kind) for kind in ("depth", "parameter")) if (self.folder / "scores.csv").is_file() else ""
        path = html.escape(str(self.report.absolute()), quote=True)
        return f'<p>{html.escape(repr(self))}: <a href="file://{path}">{path}</a></p>{charts}{self._small_table()}'

    def _chart(self, kind: str) -> str:
        """Return a chart of noether plot as an image, or nothing if the run has no scores for it."""
        with _cache.temporary("runs") as folder:
            try:
                call(["plot", str(self.folder), f"--chart={kind}", "--columns=2", f"--out={folder / 'chart.svg'}"], silent=True)
            except Error:
                return ""
            drawn = (folder / "chart.svg").read_bytes()
        if len(drawn) > LARGEST_CHART:
            return f"<p>The chart of scores by {kind} is large; it is in the report.</p>"
        return f'<img alt="scores by {kind}" style="max-width:100%;background:white" src="data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"><br>'

    def _small_table(self) -> str:
        """Return at most twenty scores of predictions (rows without a layer) as an HTML table."""
        columns = ("model", "data", "transform", "parameter", "measure", "statistic", "value", "low", "high")
        rows = [r for r in self._rows() if r["layer"] == ""][:20] if (self.folder / "scores.csv").is_file() else []

        def cell(value: Any) -> str:
            return "" if value is None else f"{value:.3f}" if isinstance(value, float) else html.escape(str(value))

        head = "".join(f"<th>{c}</th>" for c in columns)
        body = "".join("<tr>" + "".join(f"<td>{cell(r[c])}</td>" for c in columns) + "</tr>" for r in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Report:
    """The report of a run, which a notebook shows in a frame without access to the notebook."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _repr_html_(self) -> str:
        page = html.escape(self.path.read_text("utf-8"), quote=True)
        return f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{page}" style="width:100%;height:640px;border:1px solid #ccc"></iframe>'


def _number(text: Any) -> float | None:
    """Return a text as a number, or None if it is none."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _with_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with numbers as parameters, None for an empty one, if all are numbers."""
    if all(_number(row["parameter"]) is not None for row in rows if row["parameter"] != ""):
        for row in rows:
            row["parameter"] = _number(row["parameter"])
    return rows


def _curve_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells the curve of a score from others: all columns but the parameter, the trial and the values."""
    return tuple(row[c] for c in ("model", "layer", "other_model", "other_layer", "data", "transform", "measure", "variant", "factor", "statistic"))


def _flat(difference: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for what noether diff prints of a score."""
    old, new, by = (difference.get(key) or {} for key in ("a", "b", "difference"))
    either = {**new, **old}
    row = {c: either.get(c, "") for c in ("model", "layer", "other_model", "other_layer", "data", "transform", "parameter")}
    row["trial"] = either.get("trial")
    row |= {c: either.get(c, "") for c in ("measure", "variant", "factor", "statistic")}
    row |= {c: old.get(c) for c in ("value", "low", "high")} | {f"new_{c}": new.get(c) for c in ("value", "low", "high")}
    row |= {"difference": by.get("value"), "difference_low": by.get("low"), "difference_high": by.get("high")}
    row |= {"paired": difference.get("paired", False), "beyond": difference.get("beyond", False), "warning": either.get("warning", "")}
    if new.get("model", row["model"]) != row["model"]:
        row["new_model"] = new["model"]
    return row
