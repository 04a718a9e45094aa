"""Text from a notebook or a kernel, which need not be text that a file can hold."""


def well_formed(text: str) -> str:
    """The text without halves of characters: with one, no file can hold it, and no page show it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
