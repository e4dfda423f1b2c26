"""The identity that `save_grad` puts into a graph; what its backward does, a subclass says."""

from typing import Any

from mindspore import nn


class IdentityCell(nn.Cell):  # type: ignore[misc]
    """Passes its input on, and knows where the gradient belongs."""

    def __init__(self, save_dir: str, name: str) -> None:
        super().__init__()
        self.save_dir = save_dir
        self.name = name

    def construct(self, data: Any) -> Any:
        """Passes ``data`` on."""
        return data
