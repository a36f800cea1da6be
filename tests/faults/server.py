"""A Chroma server in a process of its own that can go and come back on the same port."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

PATIENCE_S = 60.0


class Server:
    """`chroma run` on a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it takes connections."""
        self._process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("chroma")),
                "run",
                *("--path", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError("the Chroma server does not take connections")

    def stop(self) -> None:
        """As an operator stops it; it is gone afterwards."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_S)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
