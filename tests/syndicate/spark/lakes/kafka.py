"""A broker of Kafka's in a process of its own, alone, with its state in a directory; it can be killed and come back."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Final

import pyspark
from attrs import define

from syndicate.spark import find_java
from tests.ports import free_ports

SHARED: Final = ("scala-library", "scala-reflect", "slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")


@define(eq=False)
class KafkaBroker:
    """The jars are what Ivy fetched, which leaves out what Spark has."""

    jars: Path
    place: Path
    address: str = ""
    process: subprocess.Popen[bytes] | None = None

    def _java(self, *arguments: str) -> list[str]:
        sparks = Path(pyspark.__file__).parent / "jars"
        classes = [f"{self.jars}/*", *[str(jar) for name in SHARED for jar in sparks.glob(f"{name}-*.jar")]]
        memory = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return [str(find_java().home / "bin" / "java"), *memory, "-cp", ":".join(classes), *arguments]

    def make(self) -> None:
        """Format the directory of its log."""
        port, control = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{control}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{control}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.place / "log",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.place / "server.properties").write_text(lines)
        command = [
            "format",
            "--standalone",
            "-t",
            "MkU3OEVBNTcwNTJENDM2Qk",
            "-c",
            str(self.place / "server.properties"),
        ]
        subprocess.run(self._java("kafka.tools.StorageTool", *command), check=True, capture_output=True)

    def start(self) -> None:
        """Wait until it takes connections."""
        log = (self.place / "server.log").open("ab")
        command = self._java("kafka.Kafka", str(self.place / "server.properties"))
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        host, port = self.address.split(":")
        while True:
            with socket.socket() as one:
                if one.connect_ex((host, int(port))) == 0:
                    return
            try:
                self.process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError((self.place / "server.log").read_text()[-3000:])

    def kill(self) -> None:
        """As ``kill -9`` does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
