"""Finding and running the command noether."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable


class Error(Exception):
    """An error of the command, or of the preparation of its input. Its text is one line."""


def first_line(e: BaseException) -> str:
    """Return the first line of the text of an exception, or its type if it has no text."""
    text = str(e).strip()
    return text.splitlines()[0] if text else type(e).__name__


def program() -> str:
    """Return the path of the command.

    It is the first that exists of: the path in the environment variable NOETHER, the program in this
    package, the program of the checkout that contains this package, and the program on PATH. NOETHER
    may also be a name, such as noether, that is looked for on PATH after these two.
    """
    name = "noether.exe" if os.name == "nt" else "noether"
    named = os.environ.get("NOETHER", "")
    if os.path.isfile(named):
        return os.path.abspath(named)
    if os.path.basename(named) != named:
        raise Error(f"there is no file {named}, which the environment variable NOETHER names")
    here = Path(__file__).resolve().parent
    for path in (here / "bin" / name, here.parent.parent / "bin" / name):
        if path.is_file():
            return str(path)
    found = shutil.which(named or "noether")
    if found and not _runs_python(found):
        return found
    raise Error(f"the command {named or 'noether'} was not found: install the wheel, run 'make build' in the checkout, or set NOETHER to its path")


def _runs_python(path: str) -> bool:
    """Report whether a program is a script of Python: that of this package, which runs the command, would run itself."""
    with open(path, "rb") as f:
        start = f.read(500)
    return start.startswith(b"#!") and b"python" in start


def shadow() -> str | None:
    """Return a warning if the program noether on PATH is the script of another Python package.

    A package that is installed later may write its own script in place of this package's.
    """
    found = shutil.which("noether")
    try:
        if not found or not _runs_python(found) or b"noether_ml" in Path(found).read_bytes():
            return None
    except OSError:
        return None
    return f"{found} is the script of another package than noether-ml: in a shell, start python -m noether_ml"


def require(package: str, use: str) -> Any:
    """Import an optional package. use begins the error if it is missing: "arrays need"."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise Error(f"{use} the package {package}: pip install {package}") from None


def flags(**values: Any) -> list[str]:
    """Return values as flags of the command: output_folder=x gives --output-folder=x.

    None and False are left out, and lists are joined by commas. A flag whose name is a keyword of
    Python, such as --from, is passed with an underscore at its end: from_.
    """
    out: list[str] = []
    for name, value in values.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(flag)
        elif isinstance(value, (list, tuple)):
            out.append(f"{flag}={','.join(map(str, value))}")
        else:
            out.append(f"{flag}={value}")
    return out


def call(arguments: Sequence[str], line: Callable[[str], None] | None = None, silent: bool = False,
         environment: Mapping[str, str] | None = None) -> Any:
    """Run the command and return the JSON that it printed, or None if it printed nothing.

    With silent, what it prints is discarded, and the result is None. environment has variables
    beside those of this process.

    line is called with each line of the command's standard error. On KeyboardInterrupt the command
    is asked to stop, and saves its results so far, before the exception is raised again.
    """
    last: list[str] = []  # the last message: further lines of its text have no prefix
    with tempfile.TemporaryFile() as output:
        try:
            # In its own session, so that Ctrl-C reaches only this process, which passes it on once.
            process = subprocess.Popen([program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if silent else output,
                                       stderr=subprocess.PIPE, start_new_session=os.name != "nt", env={**os.environ, **(environment or {})})
        except OSError as e:
            raise Error(f"the command could not be started: {e}") from None
        assert process.stderr is not None
        try:
            for raw in process.stderr:
                text = raw.decode("utf-8", "replace").rstrip()
                if text:
                    if text.startswith("noether: ") or log_record(text) is not None:
                        last = []
                    last.append(text)
                    if line is not None:
                        line(text)
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
        if code != 0:
            raise Error("\n".join([message(text) for text in last[:1]] + last[1:]) or f"the command failed with exit status {code}")
        output.seek(0)
        printed = output.read()
    return json.loads(printed) if printed.strip() else None


def query(*arguments: str, **options: Any) -> dict[str, Any]:
    """Return the JSON object that a command prints with --json. options are flags."""
    found: dict[str, Any] = call([*arguments, "--json", *flags(**options)])
    return found


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the command to stop and wait for it."""
    if process.poll() is None:
        if os.name == "nt":
            process.terminate()
        else:
            process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=60)
    except BaseException:  # a second Ctrl-C, or a command that does not end
        process.kill()
        process.wait()
    assert process.stderr is not None
    process.stderr.close()


def message(line: str) -> str:
    """Return the message in a line that the command printed, which is plain text or a log record."""
    record = log_record(line)
    if record is not None:
        return str(record.get("msg", ""))
    return line[len("noether: "):] if line.startswith("noether: ") else line


def log_record(line: str) -> dict[str, Any] | None:
    """Return the record in a line of a JSON log, or None for other lines."""
    if line.startswith("{"):
        try:
            record = json.loads(line)
        except ValueError:
            return None
        if isinstance(record, dict) and "msg" in record:
            return record
    return None


class Progress:
    """Shows the progress and the warnings of a run: a progress bar of tqdm if that is installed, else lines."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.bar: Any = None

    def __call__(self, line: str) -> None:
        if self.quiet:
            return
        record = log_record(line)
        if record is None:
            print(line, file=sys.stderr)
        elif record["msg"] == "progress":
            self._progress(record)
        elif record.get("level") == "WARN":
            print("noether: " + str(record["msg"]), file=sys.stderr)

    def _progress(self, record: dict[str, Any]) -> None:
        what = f"{record['model']} on {record['data']}"
        if self.bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                print(f"noether: {what}: {record['done']} of {record['total']} samples", file=sys.stderr)
                return
            self.bar = tqdm(total=record["total"], unit="sample")
        self.bar.set_description(what)
        self.bar.update(record["done"] - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
