"""Stands for the few layers that SGLang 0.4 takes from vLLM on a CPU without AMX: the same sums in plain torch."""
