"""Progress of many fits on standard error: bars in a terminal, a line for each finished observer elsewhere."""

import threading
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from foveate.inference.posterior import Posterior
    from foveate.inference.samples import Progress as FitProgress

# Facts of a sampler that are shown while it runs, in words.
FACTS = {"divergences": "{:.0f} divergences", "max_rhat": "R-hat {:.3f}", "acceptance_rate": "{:.0%} accepted"}

# A fit that has told of its last stage is not quite done: what is left is to judge the draws.
ALMOST = 0.97

# Before so much of the work is done, the time that is left cannot be told.
FIRST_SHARE = 0.02


class FitDisplay:
    """Bars for all fits together and for each one under way; safe to call from several threads."""

    def __init__(self, opening: str, finished: int, total: int):
        """Of `total` fits, of which some are finished already; `opening` is said when the first one begins."""
        self.console = Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[detail]}", markup=False),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._lock = threading.Lock()
        self._opening = opening
        self._before, self._done, self._total = finished, finished, total
        self._share: dict[Any, float] = {}  # of each fit under way
        self._tasks: dict[Any, Any] = {}
        self._all = self._bars.add_task("observers", total=total, completed=finished, detail="")
        self._started = time.monotonic()

    def __enter__(self) -> "FitDisplay":
        """Show the bars."""
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take them away."""
        self._bars.stop()

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self.console.print(line, markup=False, soft_wrap=True)

    def report(self, observer: Any, progress: "FitProgress") -> None:
        """Show how far the fit of an observer is."""
        with self._lock:
            if self._opening:
                self.say(self._opening)
                self._opening = ""
            share = ALMOST * min(progress.done / max(progress.total, 1), 1.0)
            # Stages count from zero again, and a bar that runs backwards says nothing.
            self._share[observer] = max(share, self._share.get(observer, 0.0))
            detail = f"{progress.stage} {progress.done}/{progress.total}"
            facts = [words.format(progress.facts[name]) for name, words in FACTS.items() if name in progress.facts]
            detail = ", ".join([detail, *facts])
            if observer not in self._tasks:
                self._tasks[observer] = self._bars.add_task(f"  {observer}", total=1.0, detail=detail)
            self._bars.update(self._tasks[observer], completed=self._share[observer], detail=detail)
            self._show_all()

    def finish(self, posterior: "Posterior") -> None:
        """Say that a fit is done, and how it went."""
        with self._lock:
            self._done += 1
            self._share.pop(posterior.observer, None)
            task = self._tasks.pop(posterior.observer, None)
            if task is not None:
                self._bars.remove_task(task)
            self._show_all()
        seconds = posterior.provenance["seconds"]
        self.say(f"{self._done}/{self._total}  {posterior.observer}: {posterior.diagnosis.verdict} {seconds:.1f} s")

    def _show_all(self) -> None:
        under_way = sum(self._share.values())
        detail = f"{self._done} of {self._total}{self._left(under_way)}"
        self._bars.update(self._all, completed=self._done + under_way, detail=detail)

    def _left(self, under_way: float) -> str:
        share = (self._done - self._before + under_way) / max(self._total - self._before, 1)
        if share < FIRST_SHARE:
            return ""
        left_s = (time.monotonic() - self._started) * (1 - share) / share
        minutes, seconds = divmod(round(left_s), 60)
        hours, minutes = divmod(minutes, 60)
        return f", about {hours}:{minutes:02}:{seconds:02} left" if hours else f", about {minutes}:{seconds:02} left"
