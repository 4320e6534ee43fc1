"""Models of transformers saved and loaded: whole, sharded, tied. usage: FOLDER"""
import os
import sys

import torch
from transformers import (BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, T5Config, T5ForConditionalGeneration)

import safetensors
from safetensors.torch import load_file

FOLDER = sys.argv[1]


def same(a, b):
    a, b = a.state_dict(), b.state_dict()
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]), name


def round_trip(name, model, files=None, **options):
    """Saved, loaded, and the same; files: how many."""
    folder = os.path.join(FOLDER, name)
    model.save_pretrained(folder, **options)
    found = [f for f in os.listdir(folder) if f.endswith(".safetensors")]
    assert len(found) == files if files else len(found) > 1, found
    again = type(model).from_pretrained(folder, dtype=model.dtype)
    same(model, again)
    return folder, again


torch.manual_seed(0)
llama = LlamaForCausalLM(LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=2))
round_trip("llama", llama, 1)
folder, _ = round_trip("sharded", llama, max_shard_size="20KB")
assert os.path.exists(os.path.join(folder, "model.safetensors.index.json"))
round_trip("half", llama.to(torch.bfloat16), 1)

# The output layer is the input embedding.
gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2))
folder, again = round_trip("tied", gpt2, 1)
assert again.lm_head.weight is again.transformer.wte.weight
names = load_file(os.path.join(folder, "model.safetensors"))
assert len(names) < len(gpt2.state_dict())

t5 = T5ForConditionalGeneration(T5Config(
    vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
    decoder_start_token_id=0))
folder, again = round_trip("t5", t5, max_shard_size="30KB")
bert = BertForMaskedLM(BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2,
                                  num_attention_heads=4, intermediate_size=48))
round_trip("bert", bert, 1)

# What was loaded can be trained and saved over its own file.
folder = os.path.join(FOLDER, "llama")
model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
with torch.no_grad():
    for parameter in model.parameters():
        parameter += 1
model.save_pretrained(folder)
same(model, LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32))

print("ok", safetensors.safe_open.__module__)
