"""The Python interface. Public names are loaded by ``logscope`` itself, each from its module here when it is first used."""
