"""A Spark Connect server in a JVM of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from syndicate.spark.java import find_java, stand_in
from syndicate.spark.session import java_options
from tests.ports import free_ports
from tests.work import PATIENCE

HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(directory: Path, more: Mapping[str, object] | None = None) -> Iterator[str]:
    """Its address; *more* are settings of Spark, and its warehouse and log are in *directory*."""
    (port,) = free_ports(1)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": java_options(find_java()),
        "spark.sql.warehouse.dir": directory / "warehouse",
        **(more or {}),
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
    log = (directory / "connect.log").open("w")
    process = subprocess.Popen(
        [*command, "--class", SERVER, "spark-internal"],
        env=environment, stdout=log, stderr=log, start_new_session=True, cwd=directory,
    )  # fmt: skip
    end = time.monotonic() + PATIENCE / 4
    try:
        while True:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (directory / "connect.log").read_text()
            assert time.monotonic() < end
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()
