"""One module per subcommand; each has ``register(app)``. Modules that begin with ``_`` are shared."""
