"""Logging of runs to Weights & Biases with the package wandb."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._command import require

if TYPE_CHECKING:
    from ._run import Run

# Files of a run folder that are uploaded.
FILES = ("study.yaml", "run.json", "scores.csv", "scores.parquet", "report.html")


def log(run: Run, project: str | None = None, folder: str | os.PathLike[str] | None = None, mode: str = "offline") -> list[str]:
    """Log each model of a run as a run of Weights & Biases, and return their folders."""
    wandb = require("wandb", "logging to Weights & Biases needs")
    record, rows = run.record, run._rows()
    study = str(record["study"])
    several_data = len(record.get("data") or []) > 1
    folders = []
    for model in record["models"]:
        config = {"study": study, "seed": record["seed"], "noether": record["noether"], "model": model["path"], "sha256": model["sha256"],
                  "opset": model["opset"], "tags": model.get("tags") or {}, "data": {d["name"]: d["n"] for d in record.get("data") or []}}
        logged = wandb.init(project=project or study, group=study, name=model["name"], config=config, mode=mode, dir=None if folder is None else os.fspath(folder))
        try:
            _scores(logged, [r for r in rows if r["model"] == model["name"]], several_data)
            files = wandb.Artifact(_artifact(f"{study}-{model['name']}"), type="noether-run")
            for name in FILES:
                if (run.folder / name).is_file():
                    files.add_file(str(run.folder / name))
            logged.log_artifact(files)
        except BaseException:
            logged.finish(exit_code=1)
            raise
        logged.finish()
        folders.append(str(Path(logged.dir).parent))
    return folders


def _scores(logged: Any, rows: list[dict[str, Any]], several_data: bool) -> None:
    """Log the scores of predictions in the summary of a run of wandb, those of layers over depth."""
    several_trials = len({row["trial"] for row in rows} - {None}) > 1
    logged.define_metric("depth")
    layers: dict[int, dict[str, Any]] = {}
    for row in rows:
        key = _key(row, several_data, several_trials)
        if row["layer"] == "":
            for suffix, column in (("", "value"), ("/low", "low"), ("/high", "high")):
                if row[column] is not None:
                    logged.summary[key + suffix] = row[column]
        elif row["value"] is not None:
            if not any(key in known for known in layers.values()):
                logged.define_metric(key, step_metric="depth")
            layers.setdefault(row["depth"] or 0, {})[key] = row["value"]
    for depth in sorted(layers):
        logged.log({"depth": depth, **layers[depth]})


def _key(row: dict[str, Any], several_data: bool, several_trials: bool) -> str:
    """Name a score, such as effective-invariance.ei/rotation/90: measure, statistic and what else tells scores apart."""
    parts = [f"{row['measure']}.{row['statistic']}"] + ([row["data"]] if several_data else [])
    parts += [str(row[c]).replace("/", "-") for c in ("other_model", "other_layer", "transform", "parameter", "variant", "factor") if row[c] != ""]
    if several_trials and row["trial"] is not None:
        parts.append(f"trial-{row['trial']}")
    return "/".join(parts)


def _artifact(name: str) -> str:
    """Replace characters that an artifact's name may not have, and shorten it to the allowed 128."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)[:128]


def main(arguments: Sequence[str]) -> int:
    """Run the command python -m noether_ml export-wandb RUN..."""
    from ._run import Run

    parser = argparse.ArgumentParser(prog="python -m noether_ml export-wandb", description="Log run folders to Weights & Biases.")
    parser.add_argument("run", nargs="+", help="run folders")
    parser.add_argument("--project", help="default: the study's name")
    parser.add_argument("--dir", help="folder in which the folder wandb is made; default: the current folder")
    parser.add_argument("--online", action="store_true", help="send to the server now; without it, folders are printed, which the command wandb sync sends later")
    o = parser.parse_args(arguments)
    for folder in o.run:
        for made in log(Run(folder), o.project, o.dir, "online" if o.online else "offline"):
            print(made)
    return 0
