"""One figure of ``benchmarks.compiled``, measured in this process, or in one that this one starts.

``python -m benchmarks.compiled_side ENGINE WORKLOAD ARGUMENTS`` prints it as JSON.
"""

from __future__ import annotations

import gc
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from benchmarks import dataspace
from benchmarks.figure import Broken
from benchmarks.flow_data import Change, Data
from benchmarks.flow_ours import InColumns, Ours
from benchmarks.server import ROOT, Server
from benchmarks.stopwatch import Stopwatch

PEERS: Final = ROOT / ".peers"
LOAD: Final = PEERS / "loadgen/loadgen"
RUST_BROKER: Final = PEERS / "syndicate-server/bin/syndicate-server"
RUST_ACTORS: Final = PEERS / "syndicate-rs/target/release/bench"
DIFFERENTIAL: Final = PEERS / "differential/target/release/ddbench"

_PATIENCE: Final = 60.0
_RUST_CONFIGURATION: Final = """\
let ?root_ds = dataspace
<bind <ref {oid: "syndicate" key: #x""}> $root_ds #f>
<require-service <relay-listener <tcp "127.0.0.1" %d> $gatekeeper>>
"""


# ---------------------------------------------------------------------------------------------------- brokers


@contextmanager
def _ours() -> Iterator[tuple[int, int]]:
    with Server() as server:
        yield server.address[1], server.process.pid


@contextmanager
def _started(command: Callable[[int, Path], list[str]]) -> Iterator[tuple[int, int]]:
    """The port and the process of a server that *command* starts, given a port that was free and a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            command(port, Path(folder)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
        )
        try:
            _await(port, process)
            yield port, process.pid
        finally:
            process.kill()
            process.wait()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise Broken(f"the server does not answer on port {port}")


def _rust(port: int, folder: Path) -> list[str]:
    (folder / "broker.pr").write_text(_RUST_CONFIGURATION % port)
    return [str(RUST_BROKER), "--no-banner", "-c", str(folder)]


def _nats(port: int, folder: Path) -> list[str]:
    return [shutil.which("nats-server") or "nats-server", "-a", "127.0.0.1", "-p", str(port)]


def _redis(port: int, folder: Path) -> list[str]:
    program = shutil.which("redis-server") or "redis-server"
    return [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]


def broker(engine: str, mode: str, pairs: int, window: int, count: int, subs: int = 100) -> dict[str, float]:
    """*count* messages (or requests, or changes) through a broker: what the load generator says of it.

    ``cpu`` is the server's processor time in seconds for 100,000 of them, ``rate`` how many a second, ``p50`` and
    ``p99`` milliseconds from end to end.
    """
    servers: dict[str, Callable[[], AbstractContextManager[tuple[int, int]]]] = {
        "ours": _ours,
        "syndicate-server": lambda: _started(_rust),
        "nats": lambda: _started(_nats),
        "redis": lambda: _started(_redis),
    }
    if not LOAD.exists():
        raise Broken("the load generator is not built: `make bench` builds it where Go is")
    with servers[engine]() as (port, pid):
        numbers = {"pid": pid, "pairs": pairs, "window": window, "n": count, "subs": subs}
        done = subprocess.run(
            [
                str(LOAD),
                *("-label", engine, "-addr", f"127.0.0.1:{port}", "-mode", mode),
                *(["-proto", engine] if engine in ("nats", "redis") else []),
                *(word for name, number in numbers.items() for word in (f"-{name}", str(number))),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
    figures = json.loads(done.stdout.splitlines()[-1])
    return {
        "cpu": figures["cpu_s_per_100k"],
        "rate": figures["rate"],
        "p50": figures["p50ms"],
        "p99": figures["p99ms"],
        "load": figures["my_cpu"],
    }


# ---------------------------------------------------------------------------------------------------- actors

_WORKLOADS: Final[dict[str, Callable[[], float]]] = {
    "messages": lambda: dataspace.messages(1000, 50_000, batched=True),
    "turns": lambda: dataspace.messages(1000, 20_000, batched=False),
    "churn": lambda: dataspace.churn(1000, 20_000, all_match=False),
    "churn-all": lambda: dataspace.churn(1000, 200, all_match=True),
    "box": lambda: dataspace.box(20_000),
    "presence": lambda: dataspace.presence(100),
}


def actors(engine: str, work: str, passes: int = 3) -> dict[str, float]:
    """Events a second of processor time, in one process: the median of some passes."""
    if engine == "syndicate-rs":
        done = [subprocess.check_output([str(RUST_ACTORS), work], text=True) for _ in range(passes)]
        return {"rate": statistics.median(json.loads(line)["rate"] for line in done)}
    Stopwatch.clock = time.process_time
    return {"rate": statistics.median(_WORKLOADS[work]() for _ in range(passes))}


# ---------------------------------------------------------------------------------------------------- circuits


def circuit(engine: str, workload: str, rows: int, keys: int, delta: int, deltas: int) -> dict[str, float]:
    """Milliseconds of processor time a delta, the median; and seconds for the rows to start with."""
    data = Data(workload, rows, keys)
    if engine == "differential":
        return _differential(data, delta, deltas)
    side = (InColumns if engine == "columns" else Ours)(workload)
    start: list[Change] = [(rows_there, []) for rows_there in data.start]
    gc.collect()
    began = time.process_time()
    side.load(side.ready(start))
    load = time.process_time() - began
    times = []
    for changes in [data.delta(delta) for _ in range(deltas)]:  # nothing is done between two, as in the peer's program
        began = time.process_time()
        side.step(side.ready(changes))
        times.append((time.process_time() - began) * 1e3)
    if not data.is_right(side.rows()):
        raise Broken(f"the result after {deltas} deltas is wrong")
    return {"load": load, "ms": statistics.median(times)}


def _mix(row: tuple[int, ...]) -> int:
    """What the peer's program adds to its checksum for a row of the result."""
    a, b, c = (*row, 0, 0)[:3]
    return (a * 1000003 + b * 7919 + c * 104729) % 1000000007


def _differential(data: Data, delta: int, deltas: int) -> dict[str, float]:
    """The peer's figures.  Its sum over all changes must be that over the rows which are there in the end."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        for side, rows in enumerate(data.start):
            file.writelines(f"{side} {key} {value} 1\n" for key, value in rows)
        for _ in range(deltas):
            file.write("#\n")
            for side, (inserted, deleted) in enumerate(data.delta(delta)):
                file.writelines(f"{side} {key} {value} 1\n" for key, value in inserted)
                file.writelines(f"{side} {key} {value} -1\n" for key, value in deleted)
        file.flush()
        line = subprocess.check_output([str(DIFFERENTIAL), data.workload, file.name], text=True)
    figures = json.loads(line)
    if figures["check"] != sum(map(_mix, data.answer())):
        raise Broken("differential-dataflow's result is not the oracle's")
    return {"load": figures["load_s"], "ms": figures["cpu_ms"]}


def main() -> None:
    """Print the figure that the command line asks for."""
    engine, function, arguments = sys.argv[1:4]
    functions: dict[str, Callable[..., dict[str, float]]] = {"broker": broker, "actors": actors, "circuit": circuit}
    print(json.dumps(functions[function](engine, **json.loads(arguments))), flush=True)


if __name__ == "__main__":
    main()
