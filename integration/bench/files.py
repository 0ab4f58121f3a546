"""``python -m integration.bench.files``: what tables of up to ten million files cost."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from integration.bench.millions import delta, iceberg, parquet
from integration.bench.millions.measure import CALLS

MAKERS: Mapping[str, Callable[..., str]] = {
    "delta": delta.make,
    "iceberg": iceberg.make,
    "parquet": parquet.make,
}
_GIB = 1 << 30


def main(
    files: Annotated[list[int], typer.Argument(min=1_000, help="Files of each table.")],
    *,
    formats: Annotated[str, typer.Option("--format", help="By comma.")] = ",".join(MAKERS),
    calls: Annotated[str, typer.Option(help="By comma.")] = ",".join(CALLS),
    memory: Annotated[str, typer.Option(help="Of the driver.")] = "2g",
    folder: Annotated[Path | None, typer.Option(help="Keep the tables here.")] = None,
) -> None:
    """Make logs without data files, and measure calls on them, each in a process of its own."""
    with TemporaryDirectory(prefix="zadapter-files-") as temporary:
        place = (folder or Path(temporary)).resolve()
        print("| format | files | call | seconds | driver JVM | Python | both, GiB |")
        print("|---|---|---|---|---|---|---|")
        for format_ in formats.split(","):
            for call, found in _measured(format_, sorted(files), calls.split(","), place, memory):
                _say_slopes(format_, call, found)


def _measured(format_: str, counts: list[int], calls: list[str], place: Path, memory: str):
    found: dict[str, dict[int, Mapping[str, float]]] = {call: {} for call in calls}
    for count in counts:
        at = place / f"{format_}-{count}"
        if not at.exists():
            at.mkdir(parents=True)
            _in_process("make", format_, str(at), str(count), memory)
        for call in calls:
            result = _in_process(call, format_, str(at / format_), memory)
            found[call][count] = result
            java, python = (result[name] / _GIB for name in ("java", "python"))
            print(
                f"| {format_} | {count:,} | {call} | {result['seconds']:.2f} | {java:.2f} | "
                f"{python:.2f} | {java + python:.2f} |",
                flush=True,
            )
    return found.items()


def _in_process(*arguments: str) -> Mapping[str, float]:
    module = __name__ if arguments[0] == "make" else "integration.bench.millions.measure"
    raise NotImplementedError(module)


def _say_slopes(format_: str, call: str, found: Mapping[int, Mapping[str, float]]) -> None:
    raise NotImplementedError
