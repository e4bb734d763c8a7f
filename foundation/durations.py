"""Durations for people."""


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, rest = divmod(round(max(0, seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
