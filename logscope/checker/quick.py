"""Rules from flags, for a first check without a rules file."""

from __future__ import annotations

from logscope.checker.amounts import read_amount
from logscope.checker.types import FLAGS, Amount, Bound, Expect, Rule, RuleFile, Select
from logscope.checker.vocabulary import READY
from logscope.checker.wording import number_text
from logscope.errors import UsageError
from logscope.packs import Place

_HERE = Place(FLAGS, 1)
OUT_OF_MEMORY = ("oom_*", "not_enough_memory", "weights_leave_no_memory", "hybrid_state_no_memory", "host_memory")


def quick_rules(ready_within: str | None, min_kv_tokens: str | None, *, no_oom: bool) -> RuleFile:
    """Return the rules that flags ask for.

    Raises:
        UsageError: an amount cannot be read.
    """
    rules: list[Rule] = []
    if ready_within is not None:
        seconds = _amount(ready_within, "--ready-within", "s", "12m")
        expect = Expect(reach=READY, within_s=seconds.value)
        rules.append(Rule("ready-within", "the server has to come up in time", "error", _HERE, None, expect))
    if min_kv_tokens is not None:
        amount = _amount(min_kv_tokens, "--min-kv-tokens", "tokens", "150k")
        bound = Bound(">=", amount, text=f">= {number_text(amount.value, 'tokens')}")
        rules.append(
            Rule(
                "min-kv-tokens",
                "fewer tokens serve fewer requests",
                "error",
                _HERE,
                Select("launch", "tokens"),
                Expect({"min": bound}),
            )
        )
    if no_oom:
        expect = Expect(absent=OUT_OF_MEMORY)
        rules.append(Rule("no-oom", "memory has to suffice", "error", _HERE, None, expect))
    return RuleFile(FLAGS, tuple(rules), {})


def _amount(text: str, flag: str, dimension: str, example: str) -> Amount:
    amount = read_amount(text)
    if amount is None or amount.dimension not in (dimension, "") or amount.value <= 0:
        raise UsageError(f"{flag} {text}: no amount of {dimension}\n  do: {flag} {example}")
    return Amount(amount.value, dimension, amount.text)
