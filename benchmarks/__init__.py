"""How fast logscope is, beside the tools that it stands in for: ``python -m benchmarks``."""
