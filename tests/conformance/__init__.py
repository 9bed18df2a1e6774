"""Conformance: what every SGLang release can print at launch, against the pattern files. ``python -m tests.conformance`` runs it.

The source of a release is read by ``ast``, never imported: ``harvest`` finds its messages, ``render`` fills their holes, ``judge`` reads
the lines with logscope's own recogniser. ``digest.json`` keeps which message fits which form in which releases, as hashes.
"""
