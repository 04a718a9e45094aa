"""The explorer, its half in Python: what heads look at, and what a changed head changes."""

from io import BytesIO
from types import SimpleNamespace

import nbformat
import pytest
import torch
from displays import displayed
from IPython.utils.capture import capture_output
from matplotlib.colors import to_rgb
from matplotlib.patches import PathPatch
from nbclient import NotebookClient
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from attention_course.explorer import explore_story, static_picture
from attention_course.explorer.reading import Change, Reading, read
from attention_course.explorer.static_picture import clear_png_of, still_picture
from attention_course.language import IDS, VOCABULARY
from attention_course.tiny_gpt import MultiHeadAttention, TinyGPT
from attention_course.trained import (
    attention_of,
    begin,
    course_model,
    next_words,
    without_head,
    without_mask,
)

PLACES = ("cave", "barn", "gym", "shop")
TOLD = {place: f"Tom is in the {place} . he sees a bat" for place in PLACES}
WORDS = {place: begin(story) for place, story in TOLD.items()}
BAT = 10
LONG = (
    "Tom has two cakes . Lucy has a hat . she wears it outside . he's inside . where is Lucy ? "
    "she's outside . what does Lucy do ? she wears her hat . who is he ?"
)
WIDGET = "application/vnd.jupyter.widget-view+json"
EVERY_HEAD = [(layer, head) for layer in range(2) for head in range(4)]


def share_of_animals(reading: Reading) -> float:
    """The share of eat and sleep in the chance of the four verbs."""
    eat, sleep, fall, wood = (reading.chances[IDS[v]] for v in ("eat", "sleep", "fall", "break"))
    return (eat + sleep) / (eat + sleep + fall + wood)


def chances_of(model: TinyGPT, words: list[str]) -> list[float]:
    chances = next_words(model, words)
    return [chances[word] for word in VOCABULARY]


# reading a model


@pytest.mark.parametrize("heads", [4, 1])
@pytest.mark.parametrize("story", [TOLD["cave"], LONG, ""])
def test_weights_and_chances_are_those_of_the_model(heads: int, story: str) -> None:
    model, words = course_model(heads), begin(story)
    reading = read(model, words)
    assert torch.allclose(torch.tensor(reading.weights), attention_of(model, words), atol=1e-6)
    assert reading.chances == pytest.approx(chances_of(model, words), abs=1e-6)


class Fused(MultiHeadAttention):
    """Lesson 08's way: no weights anywhere."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split(layer(x)) for layer in (self.W_query, self.W_key, self.W_value))
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: Tensor = self.out_proj(context.transpose(1, 2).flatten(2))
        return out


class OneHead(nn.Module):
    """Lesson 05's form: one head, no num_heads, and no out_proj: it returns what the head finds."""

    def __init__(self) -> None:
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(48, 48, bias=True) for _ in range(3))

    def weights(self, x: Tensor) -> Tensor:
        scores = self.W_query(x) @ self.W_key(x).mT / 48**0.5
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(hidden, -torch.inf).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.weights(x) @ self.W_value(x)
        return out


def test_weights_are_read_off_layers_that_never_show_them() -> None:
    model = course_model()
    for block in model.layers():
        fused = Fused(48, 48, 48, 0.0, 4)
        fused.load_state_dict(block.attention.state_dict())
        block.attention = fused.eval()
    expected = attention_of(course_model(), WORDS["gym"])
    assert torch.allclose(torch.tensor(read(model, WORDS["gym"]).weights), expected, atol=1e-5)


def test_layers_of_one_head_that_return_what_it_finds_are_read_and_switched_off() -> None:
    torch.manual_seed(1)
    model = course_model()
    for block in model.layers():
        block.attention = OneHead()  # type: ignore[assignment]
    words = WORDS["gym"]
    x = model.layers()[0].norm1(model.embed(torch.tensor([[IDS[word] for word in words]])))
    weights = model.layers()[0].attention.weights(x)
    reading = read(model, words)
    assert torch.allclose(torch.tensor(reading.weights[0]), weights, atol=1e-5)
    off = read(model, words, Change(1, 0))
    with torch.no_grad():
        for parameter in model.layers()[1].attention.W_value.parameters():
            parameter.zero_()
    assert off.chances == pytest.approx(chances_of(model, words), abs=1e-6)


def test_words_are_hidden_where_no_head_can_look() -> None:
    future = torch.ones(11, 11).triu(1).bool().tolist()
    assert read(course_model(), WORDS["gym"]).hidden == future
    assert not any(map(any, read(without_mask(course_model()), WORDS["gym"]).hidden))


def test_a_zero_of_one_head_hides_nothing() -> None:
    one, other = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.4, 0.6]]
    assert Reading(["a", "b"], [[one], [other]], []).hidden == [[False, True], [False, False]]


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="W_value"):
        read(nn.Linear(2, 2), WORDS["gym"])


class Uncalled(MultiHeadAttention):
    """Uses a layer without calling it, as in x @ layer.weight.T."""

    uncalled = ""

    def forward(self, x: Tensor) -> Tensor:
        W_value, out_proj = (
            layer.forward if name == self.uncalled else layer
            for name, layer in (("W_value", self.W_value), ("out_proj", self.out_proj))
        )
        heads = self.weights(x) @ self.split(W_value(x))
        out: Tensor = out_proj(heads.transpose(1, 2).flatten(2))
        return out


@pytest.mark.parametrize("name", ["W_value", "out_proj"])
def test_a_layer_that_forward_does_not_call_is_named(name: str) -> None:
    model = course_model()
    for block in model.layers():
        block.attention.__class__ = type("Uncalled", (Uncalled,), {"uncalled": name})
    with pytest.raises(ValueError, match=rf"self\.{name}"):
        read(model, WORDS["gym"])


# changes


@pytest.mark.parametrize(("layer", "head"), EVERY_HEAD)
def test_a_head_switched_off_everywhere_is_a_head_whose_output_is_zero(
    layer: int, head: int
) -> None:
    model = course_model()
    expected = without_head(model, f"{layer + 1}.{head + 1}")
    off = read(model, begin(LONG), Change(layer, head))
    assert off.chances == pytest.approx(chances_of(expected, begin(LONG)), abs=1e-6)
    weights = attention_of(expected, begin(LONG))
    assert torch.allclose(torch.tensor(off.weights), weights, atol=1e-6)


def test_a_head_switched_off_at_one_word_changes_nothing_before_it() -> None:
    model, words = course_model(), begin(LONG)
    before, off = (torch.tensor(r.weights) for r in (
        read(model, words), read(model, words, Change(0, 3, at=20))
    ))  # fmt: skip
    assert torch.equal(before[0], off[0])
    assert torch.equal(before[1, :, :20], off[1, :, :20])
    assert not torch.allclose(before[1, :, 20], off[1, :, 20], atol=1e-3)


TRANSPLANTS = {  # the rows receive, the columns give: the share of eat and sleep
    "cave": (0.988, 0.993, 0.049, 0.029),
    "barn": (0.983, 0.991, 0.018, 0.013),
    "gym": (0.984, 0.992, 0.009, 0.007),
    "shop": (0.982, 0.992, 0.007, 0.006),
}


@pytest.mark.parametrize("place", PLACES)
def test_twelve_numbers_change_what_a_bat_is(place: str) -> None:
    model = course_model()
    shares = [
        share_of_animals(read(model, WORDS[place], Change(0, 0, BAT, WORDS[other])))
        for other in PLACES
    ]
    assert shares == pytest.approx(TRANSPLANTS[place], abs=2e-3)


def test_the_model_is_left_as_it_was() -> None:
    model = course_model()
    before = chances_of(model, WORDS["gym"])
    read(model, WORDS["gym"], Change(0, 0, BAT, WORDS["cave"]))
    with pytest.raises(IndexError):
        read(model, WORDS["gym"], Change(0, 9))
    assert chances_of(model, WORDS["gym"]) == before
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


# what is displayed


def shown(*stories: str, **options: str) -> tuple[list, object]:
    """What the explorer displays, and its widget."""
    import ipywidgets

    with capture_output() as captured:
        explore_story(course_model(), *stories, **options)
    still, live = captured.outputs
    return [still, live], ipywidgets.widgets.widget._instances[live.data[WIDGET]["model_id"]]


@pytest.mark.usefixtures("shell")
def test_a_picture_with_words_stays_where_no_kernel_answers() -> None:
    (still, live), _ = shown(TOLD["gym"])
    assert set(still.data) == {"image/png", "text/plain"}
    alt = still.metadata["image/png"]["alt"]
    assert "In head 1.1 the word bat looks at gym 0.91, sees 0.04" in alt
    assert "Next may come . 0.50, fall 0.28, break 0.21" in alt
    assert set(live.data) == {WIDGET, "text/plain"}
    assert live.data["text/plain"].startswith("Run this cell")


@pytest.mark.usefixtures("shell")
def test_the_page_gets_every_story_and_where_to_begin() -> None:
    _, widget = shown(TOLD["gym"], TOLD["cave"], head="2.3")
    page = widget.shown
    assert (page["layer"], page["head"]) == (1, 2)
    assert [story["label"] for story in page["stories"]] == ["gym", "cave"]
    weights = torch.tensor(page["stories"][1]["weights"])
    assert torch.allclose(weights, attention_of(course_model(), WORDS["cave"]), atol=6e-5)


@pytest.mark.parametrize(
    ("stories", "labels"),
    [
        ((TOLD["gym"],), ["story 1"]),
        ((TOLD["gym"], "Tom is in the gym"), ["story 1", "story 2"]),
        ((TOLD["gym"], TOLD["gym"]), ["story 1", "story 2"]),
        (("Tom is in the gym", "Mia is in the gym"), ["Tom", "Mia"]),
        (("Tom is in the gym", "Mia is in a cave"), ["Tom is in the gym", "Mia is in a cave"]),
        ((f"{LONG} Lucy", f"{LONG} Tom . she"), ["Lucy", "Tom . she"]),
        (("a a cave a", "a a a"), ["story 1", "story 2"]),
        ((LONG, TOLD["gym"]), ["story 1", "story 2"]),
    ],
)
@pytest.mark.usefixtures("shell")
def test_stories_are_named_by_what_tells_them_apart(
    stories: tuple[str, ...], labels: list[str]
) -> None:
    _, widget = shown(*stories)
    assert [story["label"] for story in widget.shown["stories"]] == labels


def answer_to(widget: object, **asked: object) -> dict:
    sent: list[dict] = []
    widget.send = sent.append  # type: ignore[attr-defined]
    widget._handle_custom_msg({"ask": 7, **asked}, [])  # type: ignore[attr-defined]
    (answer,) = sent
    assert answer["ask"] == 7
    return answer


@pytest.mark.usefixtures("shell")
def test_the_kernel_answers_with_the_changed_model() -> None:
    _, widget = shown(TOLD["gym"], TOLD["cave"])
    answer = answer_to(widget, story=1, layer=0, head=0, at=BAT, other=0)
    assert share_of_animals(SimpleNamespace(**answer)) == pytest.approx(0.049, abs=2e-3)
    off = answer_to(widget, story=0, layer=0, head=0, at=None, other=None)
    expected = chances_of(without_head(course_model(), "1.1"), WORDS["gym"])
    assert off["chances"] == pytest.approx(expected, abs=6e-5)


@pytest.mark.usefixtures("shell")
def test_what_goes_wrong_is_answered() -> None:
    _, widget = shown(TOLD["gym"])
    answer = answer_to(widget, story=0, layer=5, head=0, at=None, other=None)
    assert "IndexError" in answer["error"]


@pytest.mark.usefixtures("shell")
def test_the_explorer_keeps_the_model_as_it_was_and_reads_it_without_dropout() -> None:
    import ipywidgets

    model = course_model()
    model.layers()[0].attention.dropout.p = 0.5
    model.train()
    with capture_output() as captured:
        explore_story(model, TOLD["gym"])
    assert model.training
    nn.init.zeros_(model.head.weight)
    model_id = captured.outputs[1].data[WIDGET]["model_id"]
    widget = ipywidgets.widgets.widget._instances[model_id]
    answer = answer_to(widget, story=0, layer=1, head=1, at=None, other=None)
    expected = chances_of(without_head(course_model(), "2.2"), WORDS["gym"])
    assert answer["chances"] == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(
    ("stories", "chosen", "said"),
    [
        ((), {}, "no story"),
        (("Tom is in the moon",), {}, "'moon'"),
        ((TOLD["gym"],), {"head": "3.1"}, "no head 3.1; its heads are 1.1, 1.2, 1.3, 1.4, 2.1"),
        ((TOLD["gym"], TOLD["cave"]), {"word": "cave"}, "the first story has no word 'cave'"),
    ],
)
def test_what_cannot_be_explored_is_refused(
    stories: tuple[str, ...], chosen: dict[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        explore_story(course_model(), *stories, **chosen)


@pytest.mark.usefixtures("shell")
def test_a_head_may_be_named_by_a_number() -> None:
    (still_one, _), _ = shown(TOLD["gym"], head=2.4)
    assert "In head 2.4" in still_one.metadata["image/png"]["alt"]


@pytest.mark.usefixtures("shell")
def test_in_grading_there_is_the_picture_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    data, _ = displayed(lambda: explore_story(course_model(), TOLD["gym"]))
    assert set(data) == {"image/png", "text/plain"}


def test_the_picture_holds_a_story_of_many_lines() -> None:
    picture, alt = still_picture(read(course_model(), begin(LONG)), 0, 3)
    figure = picture.figure()
    written = [text.get_text() for text in figure.axes[0].texts]
    assert set(LONG.split()) <= set(written)
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.x1 <= width
    assert height > 4
    assert "In head 1.4 the word ? looks at she 0.62" in alt


@pytest.mark.usefixtures("shell")
def test_it_can_begin_at_any_word_of_the_first_story() -> None:
    (still_one, _), widget = shown("he sees a bat . he sees a cat", TOLD["gym"], word="sees")
    assert widget.shown["word"] == 7, "the last place of the word"
    alt = still_one.metadata["image/png"]["alt"]
    assert "In head 1.1 the word sees looks at" in alt
    _, widget = shown(TOLD["gym"])
    assert widget.shown["word"] == BAT


def test_the_picture_hatches_what_is_hidden_from_its_word() -> None:
    for model, hidden in ((course_model(), 5), (without_mask(course_model()), 0)):
        picture, _ = still_picture(read(model, WORDS["gym"]), 1, 1, at=5)
        patches = picture.figure().axes[0].patches
        assert sum(patch.get_hatch() is not None for patch in patches) == hidden
        arcs = [patch for patch in patches if isinstance(patch, PathPatch)]
        drawn = [j for j, weight in enumerate(picture.row) if weight >= static_picture.DRAWN]
        assert len(arcs) == len({*drawn} - {5})


def luminance(color: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_picture_is_clear_and_holds_on_light_and_dark_pages() -> None:
    picture, _ = still_picture(read(course_model(), WORDS["gym"]), 0, 0)
    image = Image.open(BytesIO(clear_png_of(picture))).convert("RGBA")
    assert image.getpixel((image.width - 1, image.height - 1))[3] == 0
    words = {*WORDS["gym"]}
    for text in picture.figure().axes[0].texts:
        ground = text.get_bbox_patch()
        assert ground is not None or text.get_text() in words, text.get_text()
        assert contrast(text.get_color(), static_picture.GROUND) >= 4.5
    assert min(contrast(static_picture.BLUE, page) for page in ("white", "#111111")) >= 3


def test_it_works_in_a_kernel_without_a_front_end() -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell(
            "import sys\n"
            "from attention_course.explorer import explore_story\n"
            "from attention_course.trained import course_model\n"
            "late = 'anywidget' not in sys.modules\n"
            f"explore_story(course_model(), {TOLD['gym']!r})"
        ),
        nbformat.v4.new_code_cell("late"),
    ]
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    still, live = notebook.cells[0].outputs
    assert "image/png" in still.data
    assert WIDGET in live.data
    assert notebook.cells[1].outputs[0].data["text/plain"] == "True"
