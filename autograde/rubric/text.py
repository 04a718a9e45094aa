"""Text from a notebook or a kernel, which may hold what no file can."""


def well_formed(text: str) -> str:
    """Return the text without halves of characters, which no file can hold and no page can show."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
