"""Make the models of real launches: a Llama with random weights, and copies of it that are damaged.

It is run by the environment of a release: the files are as that one's libraries write and read them.
The model has 8 layers of 8 KV heads of 128: 32 KiB of KV cache per token, about 0.27 GiB of weights, so that no figure of a log is 0.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 512
SENTENCES = ["The capital city of France is Paris. " * 50, "hello world this is a tiny tokenizer " * 50]


def make_tokenizer(place: Path) -> None:
    """Write a byte-level tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[*special.values()], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    fast.save_pretrained(place)


def make_model(place: Path) -> None:
    """Write random weights, in several files."""
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=1024,
        intermediate_size=4096,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=8,
        head_dim=128,
        vocab_size=VOCABULARY,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=None,
        tie_word_embeddings=False,
        torch_dtype="bfloat16",
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(place, max_shard_size="100MB")


def main(models_dir: Path) -> None:
    """Write ``whole``, ``truncated`` (a weight file ends early) and ``weightless`` (none is there)."""
    fresh = models_dir / "fresh"
    make_tokenizer(fresh)
    make_model(fresh)
    weights = shutil.ignore_patterns("*.safetensors*")
    shutil.copytree(fresh, models_dir / "weightless", ignore=weights, dirs_exist_ok=True)
    truncated = models_dir / "truncated"
    shutil.copytree(fresh, truncated, dirs_exist_ok=True)
    with sorted(truncated.glob("*.safetensors"))[-1].open("r+b") as file:
        file.truncate(file.seek(0, 2) // 2)
    fresh.rename(models_dir / "whole")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
