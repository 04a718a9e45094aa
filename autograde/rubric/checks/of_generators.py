"""A check of results that are drawn from a generator."""

from autograde.rubric.checks.readings import Reading, Unreadable, claim
from autograde.values.base import Plain
from autograde.values.dispatch import apart
from autograde.values.loaded import is_tensor


@claim
def follows_generator(value: Plain, _before: Plain) -> list[Reading]:
    """Check results by the state they were drawn from: equal states, equal results."""
    if not isinstance(value, dict) or list(value) != GENERATOR_CASES:
        raise Unreadable("the record of results cannot be read")
    same, other, own, own_other, kept = value.values()
    told = (
        ("the same generator state gives another result", not _equal(same)),
        ("another generator state gives the same result", _equal(other[:2]) or _equal(other[::2])),
        ("without a generator, torch.manual_seed does not fix the result", not _equal(own)),
        ("without a generator, torch's own state makes no difference", _equal(own_other)),
        (
            "the kept numbers differ with a generator and without one",
            not _kept_alike(same, own),
        ),
        ("PyTorch's own random state changes although a generator is given", kept is not True),
    )
    return [Reading("the fault", float(bool(found)), 0, 0.1, symptom) for symptom, found in told]


GENERATOR_CASES = [
    "same state",
    "other state",
    "own, same state",
    "own, other state",
    "leaves torch's own state alone",
]


def _equal(results: list[Plain]) -> bool:
    one, other = results
    return apart(one, other).distance < 1e-9


def _kept_alike(with_one: list[Plain], without: list[Plain]) -> bool:
    """Return whether tensors hold the same numbers where neither holds 0."""
    one, other = with_one[0], without[0]
    if not is_tensor(one) or not is_tensor(other):
        return type(one) is type(other)
    kept = (one != 0) & (other != 0) if one.shape == other.shape else one != 0
    return one.shape == other.shape and apart(one * kept, other * kept).distance < 1e-6
