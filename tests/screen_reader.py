"""What a screen reader finds on a page: headings, landmarks, tables, pictures, places, links."""

from html.parser import HTMLParser

LANDMARKS = {"main", "header"}
EMPTY = {"meta", "img", "br", "hr", "link", "input", "col"}


class Outline(HTMLParser):
    """Reads a page; `faults` says what would be wrong to listen to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.attributes.append((tag, found))
        if tag not in EMPTY:
            self._open.append(tag)
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.headings.append((int(tag[1]), ""))
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag == "a":
            self.links.append(str(found.get("href")))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if self._open and self._open[-1] != "title" and any(t[0] == "h" and t[1:].isdigit()
                                                            for t in self._open):  # fmt: skip
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    def faults(self) -> list[str]:
        found = []
        levels = [level for level, _ in self.headings]
        if levels.count(1) != 1 or levels[0] != 1:
            found.append(f"not one h1 first: {self.headings[:3]}")
        for before, after in zip(self.headings, self.headings[1:], strict=False):
            if after[0] > before[0] + 1:
                found.append(f"a level is left out: {before} {after}")
        found += [f"no {name}" for name in LANDMARKS if self.tags.count(name) != 1]
        found += [f"empty heading {level}" for level, text in self.headings if not text.strip()]
        found += [f"{name} twice" for name in set(self.ids) if self.ids.count(name) > 1]
        found += [f"leads nowhere: {link}" for link in self.links if link[1:] not in self.ids]
        for tag, attributes in self.attributes:
            if tag == "img" and not attributes.get("alt"):
                found.append("a picture without words")
            if tag == "html" and attributes.get("lang") != "en":
                found.append("no language")
            if tag in ("script", "iframe", "link", "object", "form"):
                found.append(f"a {tag}")
        if self.tags.count("table") > self.tags.count("thead"):
            found.append("a table without a head")
        if not any(a.get("name") == "viewport" for _, a in self.attributes):
            found.append("no viewport")
        return found


def outline_of(page: str) -> Outline:
    outline = Outline()
    outline.feed(page)
    return outline
