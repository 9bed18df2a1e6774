"""Printed arguments and typed commands are read, whole or cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logscope.server_args import (
    ArgValue,
    Command,
    ServerArgs,
    arg_count,
    arg_number,
    parse_command,
    parse_server_args,
    read_value,
)

DATACLASS = (
    "ServerArgs(model_path='/models/m', port=30000, mem_fraction_static=0.88, served_model_name=None, trust_remote_code=False, "
    "enable_dp_attention=True, cuda_graph_bs=[1, 2, 4], lora_paths=('a', 'b'), "
    "model_loader_extra_config='{\"a\": 1, \"b\": [2, 3]}', chat=\"it's, so\", escaped='a\\'b, c', "
    "mode=<Mode.NULL: 0>, hook=<function f at 0x7f>, sub=LoRARef(lora_id='x', pinned=False), arrow=a->b, "
    "buckets={'ttft': [0.1, 1.0]}, nested=[[1], (2, 'x,y')], tiny=1e-05, minus=-1, dtype=torch.bfloat16)"
)
VALUES = {
    "model_path": "/models/m",
    "port": 30000,
    "mem_fraction_static": 0.88,
    "served_model_name": None,
    "trust_remote_code": False,
    "enable_dp_attention": True,
    "cuda_graph_bs": (1, 2, 4),
    "lora_paths": ("a", "b"),
    "model_loader_extra_config": '{"a": 1, "b": [2, 3]}',
    "chat": "it's, so",
    "escaped": "a'b, c",
    "mode": "<Mode.NULL: 0>",
    "hook": "<function f at 0x7f>",
    "sub": "LoRARef(lora_id='x', pinned=False)",
    "arrow": "a->b",
    "buckets": "{'ttft': [0.1, 1.0]}",
    "nested": ((1,), (2, "x,y")),
    "tiny": 1e-05,
    "minus": -1,
    "dtype": "torch.bfloat16",
}
DICT = (
    "{'model_path': '/models/m', 'port': 30000, 'mem_fraction_static': 0.88, 'served_model_name': None, "
    "'trust_remote_code': False, 'enable_dp_attention': True, 'cuda_graph_bs': [1, 2, 4], 'lora_paths': ('a', 'b'), "
    "'model_loader_extra_config': '{\"a\": 1, \"b\": [2, 3]}', 'chat': \"it's, so\", 'escaped': 'a\\'b, c', "
    "'mode': <Mode.NULL: 0>, 'hook': <function f at 0x7f>, 'sub': LoRARef(lora_id='x', pinned=False), 'arrow': a->b, "
    "'buckets': {'ttft': [0.1, 1.0]}, 'nested': [[1], (2, 'x,y')], 'tiny': 1e-05, 'minus': -1, 'dtype': torch.bfloat16}"
)
ALIASES = {"tp": "tp_size", "tensor_parallel_size": "tp_size", "model": "model_path"}


@pytest.mark.parametrize("text", [DATACLASS, DICT])
def test_both_spellings_give_the_same_values(text: str) -> None:
    assert ServerArgs(VALUES, complete=True) == parse_server_args(text)


@pytest.mark.parametrize("text", [DATACLASS, DICT])
def test_text_after_the_closing_bracket_is_no_argument(text: str) -> None:
    assert ServerArgs(VALUES, complete=True) == parse_server_args(text + ", and=1, more)")


@pytest.mark.parametrize("text", ["ServerArgs()", "{}"])
def test_no_arguments_are_complete(text: str) -> None:
    assert ServerArgs({}, complete=True) == parse_server_args(text)


@pytest.mark.parametrize("text", [DATACLASS, DICT])
def test_cut_anywhere_what_is_kept_is_a_prefix_with_equal_values(text: str) -> None:
    whole = list(VALUES.items())
    kept_counts = []
    for end in range(len(text)):
        cut = parse_server_args(text[:end])
        kept = list(cut.values.items())
        assert whole[: len(kept)] == kept, text[:end]
        assert not cut.complete, text[:end]
        kept_counts.append(len(kept))
    assert sorted(kept_counts) == kept_counts
    assert len(VALUES) - 1 == kept_counts[-1]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("ServerArgs(port=30000, chunked_prefill_size=81", {"port": 30000}),
        ("ServerArgs(port=30000, quantiza>", {"port": 30000}),
        ("ServerArgs(port=30000, cuda_graph_bs=[1, 2", {"port": 30000}),
        ("ServerArgs(port=30000, model_path='/models/a, b=1", {"port": 30000}),
        ("{'port': 30000, 'tp_size': 1", {"port": 30000}),
        ("ServerAr", {}),
        ("{", {}),
    ],
)
def test_value_at_the_cut_is_left_out(text: str, values: dict[str, object]) -> None:
    assert ServerArgs(values, complete=False) == parse_server_args(text)


_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12)
_LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
_NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)


def frozen(value: object) -> object:
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


@given(st.dictionaries(_NAMES, _LITERALS, max_size=4), st.data())
def test_any_literals_survive_and_a_cut_keeps_a_prefix(values: dict[str, object], data: st.DataObject) -> None:
    for text in (repr(values), f"ServerArgs({', '.join(f'{name}={value!r}' for name, value in values.items())})"):
        whole = [(name, frozen(value)) for name, value in values.items()]
        assert whole == list(parse_server_args(text).values.items())
        kept = list(parse_server_args(text[: data.draw(st.integers(0, len(text) - 1))]).values.items())
        assert whole[: len(kept)] == kept


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0.5", 0.5),
        ("'a'", "a"),
        ("None", None),
        ("True", True),
        ("[1, [2]]", (1, (2,))),
        ("{'a': 1}", "{'a': 1}"),
        ("{1, 2}", "{1, 2}"),
        ("[{'a': 1}]", ("{'a': 1}",)),
        ("b'a'", "b'a'"),
        ("1j", "1j"),
        ("torch.bfloat16", "torch.bfloat16"),
        ("007", "007"),
        ("inf", "inf"),
        ("", ""),
        ("[1, 2", "[1, 2"),
        ("(" * 5000, "(" * 5000),
        ("a\x00b", "a\x00b"),
    ],
)
def test_value_is_the_python_literal_or_the_text(text: str, value: object) -> None:
    read = read_value(text)
    assert (type(value), value) == (type(read), read)


def flags_of(text: str) -> dict[str, object]:
    return dict(parse_command(text, ALIASES).flags)


def test_command_has_environment_flags_and_text() -> None:
    text = (
        "OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server --model /models/m --tp 8 "
        "--mem-fraction-static=0.55 --trust-remote-code --cuda-graph-bs 1 2 4 --seed -1"
    )
    env = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "0,1"}
    flags = {
        "model_path": "/models/m",
        "tp_size": 8,
        "mem_fraction_static": 0.55,
        "trust_remote_code": True,
        "cuda_graph_bs": (1, 2, 4),
        "seed": -1,
    }
    assert Command(env, flags, text) == parse_command(text, ALIASES)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("sglang serve --model-path m --port 1", {"model_path": "m", "port": 1}),
        ("python3 /opt/sglang/launch_server.py --tp 2", {"tp_size": 2}),
        ("python -m sglang.launch_server --tensor-parallel-size 4", {"tp_size": 4}),
        ("python -m sglang.launch_server --chat-template 'a b'", {"chat_template": "a b"}),
        (
            "python -m sglang.launch_server --json-model-override-args '{\"a\": [1, 2]}'",
            {"json_model_override_args": '{"a": [1, 2]}'},
        ),
        ("python -m sglang.launch_server --a= --b", {"a": "", "b": True}),
        ("python -m sglang.launch_server --tp 2 --tp 4", {"tp_size": 4}),
        ("python -m sglang.launch_server -- --tp 2", {"tp_size": 2}),
        ("python -m sglang.launch_server", {}),
        ("python -m other.module --tp 2", {}),
        ("", {}),
    ],
)
def test_flags_are_named_like_the_fields_of_server_args(text: str, flags: dict[str, object]) -> None:
    assert flags == flags_of(text)


@pytest.mark.parametrize(
    "tail", ["2>&1 | tee run.log", "> run.log 2>&1 &", "&& echo done", "; true", "2> err.log", ">run.log", "\\"]
)
def test_what_the_shell_takes_for_itself_is_no_value(tail: str) -> None:
    assert {"tp_size": 8} == flags_of(f"python3 -m sglang.launch_server --tp 8 {tail}")


@pytest.mark.parametrize("quoted", ["'/models/a b", '"/models/a b', "'", '"x --tp 3', "a\\"])
def test_flag_whose_value_is_cut_inside_quotes_is_left_out(quoted: str) -> None:
    assert {"port": 1} == flags_of(f"python3 -m sglang.launch_server --port 1 --model-path {quoted}")


def test_cut_quotes_leave_out_the_whole_list_that_they_are_in() -> None:
    assert {"port": 1} == flags_of("python3 -m sglang.launch_server --port 1 --lora-paths a 'b")


def test_quotes_cut_before_the_program_leave_no_flag() -> None:
    assert {} == flags_of("A='x python3 -m sglang.launch_server --port 1")


@given(st.lists(st.tuples(_NAMES, st.integers() | st.from_regex(r"[a-z/][a-z ',]{0,6}", fullmatch=True)), max_size=4))
def test_quoted_values_come_back(pairs: list[tuple[str, int | str]]) -> None:
    import shlex

    words = [word for name, value in pairs for word in (f"--{name}", shlex.quote(str(value)))]
    expected = {ALIASES.get(name, name): read_value(str(value)) for name, value in pairs}
    assert expected == flags_of(" ".join(["python3 -m sglang.launch_server", *words]))


@pytest.mark.parametrize(
    ("value", "number", "count"),
    [
        *[(8, 8.0, 8), (0.5, 0.5, 1), (0, 0.0, 1), (-2, -2.0, 1), (10**9, 1e9, 1)],
        *[(True, None, 1), ("8", None, 1), (None, None, 1)],
        *[(float("inf"), None, 1), (float("nan"), None, 1), (10**400, None, 1)],
    ],
)
def test_a_number_that_no_flag_has_is_no_number(value: ArgValue, number: float | None, count: int) -> None:
    assert (number, count) == (arg_number({"tp_size": value}, "tp_size"), arg_count({"tp_size": value}, "tp_size"))
