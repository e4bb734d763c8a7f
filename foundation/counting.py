"""Numbers of things in messages: "1 file", "1,204 files"."""


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless it is one.

    Args:
        number: at least 0.
        noun: in the singular; its plural ends in s.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
