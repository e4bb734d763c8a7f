"""Speed next to the peers; `python -m benchmarks.speed --help`."""
