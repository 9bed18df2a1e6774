"""Real launches: SGLang itself, started on the CPU in an environment of its own, and its live log read by logscope.

``python -m tests.real_launch.setup RELEASE`` makes the environment, ``pytest -m real_launch`` starts the servers. ``cases`` says what is
started, ``server`` starts and ends it, ``plain`` reads the log in the simplest way there is, to compare with what logscope reads.
"""
