"""Work of many small operations on a GPU, recorded once and replayed: launching each takes longer than it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Recorder"]


class _Recording(NamedTuple):
    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]
    output: Tensor


class Recorder:
    """Runs a function of tensors on a device, as a CUDA graph from its third call with the same shapes on.

    The first call with new shapes runs the function as it is, which loads and compiles what it needs. The second one
    records it. What can't be recorded goes on as it is; so does everything on the CPU.
    """

    def __init__(self, device: str) -> None:
        self._device, self._records = device, device != "cpu"
        self._recordings: dict[tuple[torch.Size, ...], _Recording | None] = {}
        self._pool: Any = None  # memory that all recordings share, since they never run at the same time

    def __call__(self, function: Callable[..., Tensor], *arguments: Tensor) -> Tensor:
        """Apply a function, always the same one, to tensors of the CPU."""
        shapes = tuple(argument.shape for argument in arguments)
        recording = self._recordings.get(shapes)
        if recording is None and shapes in self._recordings and self._records:
            recording = self._recordings[shapes] = self._record(function, arguments)
        if recording is None:
            self._recordings[shapes] = None
            return function(*(argument.to(self._device) for argument in arguments))
        for place, argument in zip(recording.inputs, arguments, strict=True):
            place.copy_(argument)
        recording.graph.replay()
        return recording.output

    def _record(self, function: Callable[..., Tensor], arguments: tuple[Tensor, ...]) -> _Recording | None:
        """Record a function for arguments of these shapes; `None` if an operation can't be recorded."""
        inputs = [argument.to(self._device) for argument in arguments]
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:  # not torch.cuda.graph, which would empty torch's store of memory each time
            with torch.cuda.stream(torch.cuda.Stream()):
                graph.capture_begin(pool=self._pool)
                try:
                    output = function(*inputs)
                finally:
                    graph.capture_end()
        except RuntimeError:
            self._records = False
            return None
        self._pool = graph.pool()
        return _Recording(graph, inputs, output)
