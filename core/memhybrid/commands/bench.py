"""`memhybrid bench`: speed beside the peers on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def add_to(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def bench(  # pyright: ignore[reportUnusedFunction] - typer calls it
        size: int = typer.Option(20_000, min=100, help="How many memories."),
        tenants: int = typer.Option(20, min=1, help="How many tenants share them."),
        json_file: Path | None = typer.Option(None, "--json", help="Write the numbers to this file."),  # noqa: B008
        peers: bool = typer.Option(True, help="Measure bm25s, tantivy and the frameworks, too."),
    ) -> None:
        """Time searches, writes and opening beside Chroma, rank_bm25, bm25s, tantivy and the frameworks; ratios first."""
        from rich.console import Console
        from rich.table import Table

        from memhybrid.bench import run_bench

        console = Console()
        with console.status("making memories") as status:
            report = run_bench(size, tenants, say=status.update, peers=peers)
        table = Table(title=f"{size:,} memories, {tenants} tenants: ratios (below 1: faster than the peer)")
        table.add_column("what")
        table.add_column("ratio", justify="right")
        for name, value in report.ratios.items():
            table.add_row(name, f"{value:.4f}")
        console.print(table)
        for name, value in report.medians_ms.items():
            console.print(f"{name:20} {value:12.3f} ms")
        for part, size_ in report.bytes_a_memory.items():
            console.print(f"{part:20} {size_:12.0f} bytes a memory")
        for note in report.notes:
            console.print(note)
        if json_file is not None:
            json_file.write_text(json.dumps(report.as_dict(), indent=2) + "\n", encoding="utf-8")
