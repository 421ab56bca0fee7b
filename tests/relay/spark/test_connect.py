"""Spark Connect: a real server, and a client in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from syndicate.spark.java import find_java, stand_in
from syndicate.spark.session import java_options
from tests.relay.spark.brokers import Broker, free_port
from tests.work import PATIENCE

pytest.importorskip("grpc", reason="needs the extra connect: pip install 'syndicate-dataspace[connect]'")

HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Spark Connect server, in a JVM of its own."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": java_options(find_java()),
        "spark.sql.warehouse.dir": tmp_path / "warehouse",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(HOME / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "700m", *options]
    environment = {
        **os.environ,
        "JAVA_HOME": str(stand_in(find_java().home)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log = (tmp_path / "connect.log").open("w")
    process = subprocess.Popen(
        [*command, "--class", SERVER, "spark-internal"],
        env=environment, stdout=log, stderr=log, start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    end = time.monotonic() + PATIENCE / 4
    try:
        while True:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (tmp_path / "connect.log").read_text()
            assert time.monotonic() < end
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_connect_session(server: str, broker: Broker, tmp_path: Path) -> None:
    """The format in both directions, views and a stream; a session beside it; a table and a feed as sources, a sink and
    its readers; what needs a classic session refuses with the reason.
    """
    command = [sys.executable, "-W", "ignore", "-m", "tests.relay.spark.connecting", server, broker.address]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert results["source"] == [[["b", 2]], [["a", 2], ["b", 3]]]
    cloned = {"another": True, "options": ["1", None], "views": [True, False], "rows": 1}
    assert results["beside"] == cloned
    assert results["table"] == [[["a", 1], ["b", 3], ["g", 1]], [["a", 1], ["b", 1], ["g", 1]]]
    stream, view, engine = results["refused"]
    assert "the stream of Box needs a classic session" in stream
    assert "needs a classic session" in view
    assert engine.startswith("SparkEngine needs a classic session")
