"""Texts of strangers: labels, names of files, whatever a spec or a result holds."""

__all__ = ["one_line"]


def one_line(text: str) -> str:
    r"""Escape line breaks and other control characters: a line feed becomes `\n`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
