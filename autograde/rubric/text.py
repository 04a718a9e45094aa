"""Text that files can hold, and numbers as people write them."""


def well_formed(text: str) -> str:
    """The text without halves of characters: with one, no file can hold it, and no page show it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def number(points: float) -> str:
    """Return points as people write them: 3, 2.5, 1.29."""
    return f"{points:.2f}".rstrip("0").rstrip(".")
