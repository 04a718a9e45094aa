"""Near misses that are made from the lesson's own answer: slips in any function of tensors."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A slip in what an answer returns, and the belief behind it.

    `value` is what becomes of a returned value; `then` is done after that. `given` stands for the
    answer's first argument.
    """

    belief: str
    hint: str
    value: str = "value"
    then: str = "None"


MUTATIONS = {
    "detached": Mutation(
        "nothing is trained through this result.",
        "Whoever calls it may train what came before. What cuts off the gradient?",
        value="value.detach()",
    ),
    "float32_returned": Mutation(
        "float32 is good enough for any result.",
        "In which dtype do the numbers arrive? The result should keep it.",
        value="value.float()",
    ),
    "float32_inside": Mutation(
        "float32 is precise enough for intermediate results.",
        "What float32 rounds away does not come back. In which dtype do the numbers arrive?",
        value="value.float().to(given.dtype)",
    ),
    "squeezed": Mutation(
        "a dimension of size 1 can always be dropped.",
        "Which shape should come back when one of the sizes is 1?",
        value="value.squeeze()",
    ),
    "changed_in_place": Mutation(
        "an argument is no longer needed once the result is there.",
        "The caller still has it. What does it hold afterwards?",
        value="value.clone()",
        then="given.requires_grad or given.zero_()",
    ),
    "viewed": Mutation(
        "`view` joins dimensions, however they lie in memory.",
        "What does it say to a transposed tensor? Which method copies where it has to?",
        then="given.view(-1)",
    ),
}


SLIP = """

def with_slip(answer):
    from functools import wraps

    @wraps(answer)
    def slipped(*args, **named):
        returned, given = answer(*args, **named), [*args, *named.values()][{first}]
        several = isinstance(returned, tuple)
        result = tuple({value} for value in (returned if several else [returned]))
        {then}
        return result if several else result[0]

    return slipped


{answer} = with_slip({answer})
"""


def mutant(answer: str, mutation: Mutation) -> str:
    """Return the answer with the slip around its last function, or its last class's `forward`.

    Raises:
        ValueError: it has neither.
    """
    found = re.findall(r"^(def|class) (\w+)", answer, re.MULTILINE)
    if not found:
        raise ValueError("the answer defines no function and no class")
    kind, name = found[-1]
    answered, first = (f"{name}.forward", 1) if kind == "class" else (name, 0)
    slip = SLIP.format(answer=answered, first=first, value=mutation.value, then=mutation.then)
    return answer.rstrip() + slip
