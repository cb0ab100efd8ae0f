"""This host: `--on local`, which is what is meant if nothing is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp

from graven.executors import estimates
from graven.experiment import Ended, Keep, Local, Observer, Sink, Work


@dataclass(frozen=True)
class LongestFirst(Local):
    """This host, with what takes longest begun first: at the end no core waits for another long.

    Jobs that take about as long, within a factor of two or so, stay in the order of the work.
    """

    def costs(self, work: Sequence[Work], left: Sequence[int]) -> Sequence[float]:
        """How long each takes, about, in seconds."""
        return [estimates.seconds(work[at].job) for at in left]

    def run(
        self,
        work: Sequence[Work],
        left: Sequence[int],
        *,
        keep: Keep | None,
        sink: Sink,
        observe: Observer | None,
    ) -> Ended:
        """Does what is left of some work."""
        scale = {at: frexp(estimates.seconds(work[at].job))[1] for at in left}
        order = sorted(left, key=lambda at: -scale[at])
        return super().run(work, order, keep=keep, sink=sink, observe=observe)
