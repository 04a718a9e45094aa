"""A layer's lines beside the steps that are known."""

import pytest
import torch
from torch import Tensor, nn

from attention_course import one_sentence, trace


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 2)

    def helped(self, x: Tensor) -> Tensor:
        return x * 2

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        y = self.first(x)  # (b, n, 2)
        y = self.helped(y) + 1
        return y.sum(dim=(0, 1, 2)) + torch.ones(b, n, 1) + 0 + 0 + 0 + 0 + 0 + 0 + 0 + 0 + 0 + 0


def test_lines_in_their_order_with_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    layer, x = Layer(), torch.randn(2, 4, 3)
    trace(layer, x, {"other": torch.zeros(2, 4, 2), "step one": layer.first(x)})
    assert capsys.readouterr().out.splitlines() == [
        f"{'your line':70}  shape",
        f"{'y = self.first(x)':70}  (2, 4, 2)  step one",
        f"{'y = self.helped(y) + 1':70}  (2, 4, 2)",
        "return y.sum(dim=(0, 1, 2)) + torch.ones(b, n, 1) + 0 + 0 + 0 + 0 + 0…  (2, 4, 1)",
    ]


def test_the_known_steps_end_where_pytorch_does() -> None:
    x, layers = torch.randn(5, 3), [nn.Linear(3, 2, bias=False) for _ in range(3)]
    heads = (layer(x)[None] for layer in layers)
    expected = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)[0]
    assert torch.allclose(one_sentence(x, *layers)["context"], expected, atol=1e-6)
