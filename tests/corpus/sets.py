"""The corpus of sets: an index and its shards, each case a folder of its own."""
import json

INDEX = "model.safetensors.index.json"


def add_sets(c, frame, header, u8):
    """Append to the corpus c: files, and rows of c.sets."""
    a, b = frame(header(u8("a", 0, 8)), bytes(8)), frame(header(u8("b", 0, 4)), bytes(4))
    shards = {"one.safetensors": a, "two.safetensors": b}
    both = {"a": "one.safetensors", "b": "two.safetensors"}

    def add(code, slug, index, files, note, tensors=None):
        rule = "R%d-" % c.numbers[code] if code else ""
        folder = "sets/%s/%s%s" % ("refuse" if code else "accept", rule, slug)
        index = index if isinstance(index, str) else json.dumps(index)
        c.files["%s/%s" % (folder, INDEX)] = index.encode()
        for name, data in files.items():
            c.files["%s/%s" % (folder, name)] = data
        c.sets.append({"file": "%s/%s" % (folder, INDEX), "note": note,
                       "rule": rule[:-1] or None, "verdict": "refuse" if code else "accept",
                       "code": code, "tensors": tensors})

    def mapped(weight_map):
        return {"metadata": {"total_size": 12}, "weight_map": weight_map}

    add(None, "two", mapped(both), shards, "two shards", ["a", "b"])
    add(None, "no-metadata", {"weight_map": both}, shards, "no metadata", ["a", "b"])
    add(None, "not-in-index", mapped({"a": "one.safetensors"}),
        {"one.safetensors": frame(header(u8("a", 0, 4), u8("z", 4, 8)), bytes(8))},
        "a tensor of a shard that the index does not name", ["a", "z"])
    add(None, "folder", mapped({"a": "sub/one.safetensors"}), {"sub/one.safetensors": a},
        "a shard in a folder beneath", ["a"])
    add(None, "dots-in-name", mapped({"a": "one..safetensors"}), {"one..safetensors": a},
        "two dots inside a name", ["a"])

    for slug, index in [("array", []), ("string", "\"x\""), ("number", "1"), ("null", "null"),
                        ("no-map", {"metadata": {}}), ("map-array", {"weight_map": ["a"]}),
                        ("map-null", {"weight_map": None}), ("map-string", {"weight_map": "a"}),
                        ("value-number", {"weight_map": {"a": 1}}),
                        ("value-null", {"weight_map": {"a": None}}),
                        ("value-array", {"weight_map": {"a": ["one.safetensors"]}}),
                        ("value-object", {"weight_map": {"a": {}}})]:
        add("index_type", slug, index, {"one.safetensors": a}, "no map of names to shards")
    add("json_syntax", "comma", '{"weight_map":{"a":"one.safetensors",}}', {"one.safetensors": a},
        "the index is no JSON")
    add("json_syntax", "cut", '{"weight_map":{"a":"one.safe', {"one.safetensors": a},
        "the index is cut short")
    add("json_trailing", "tail", '{"weight_map":{"a":"one.safetensors"}}x', {"one.safetensors": a},
        "text after the index")
    for slug, name in [("parent", "../one.safetensors"), ("absolute", "/tmp/one.safetensors"),
                       ("middle", "sub/../one.safetensors"), ("backslash", "sub\\one.safetensors"),
                       ("nul", "one.safetensors\0.txt"), ("parent-only", ".."),
                       ("deep", "sub/../../one.safetensors")]:
        add("index_path", slug, mapped({"a": name}), {"one.safetensors": a},
            "the shard's name leads out of the folder")
    add("index_shard_missing", "one", mapped(both), {"one.safetensors": a}, "a shard is missing")
    add("index_shard_missing", "all", mapped(both), {}, "all shards are missing")
    add("index_tensor_missing", "one", mapped({**both, "c": "two.safetensors"}), shards,
        "a tensor that no shard holds")
    add("index_tensor_misplaced", "swapped", mapped({"a": "two.safetensors",
                                                     "b": "one.safetensors"}), shards,
        "two tensors swapped")
    add("index_tensor_misplaced", "one", mapped({**both, "c": "one.safetensors"}),
        {"one.safetensors": a, "two.safetensors": frame(header(u8("b", 0, 4), u8("c", 4, 8)),
                                                        bytes(8))}, "a tensor in the other shard")
    add("index_tensor_duplicate", "same", mapped(both),
        {"one.safetensors": a, "two.safetensors": frame(header(u8("b", 0, 4), u8("a", 4, 8)),
                                                        bytes(8))}, "a tensor in both shards")
    add("data_truncated", "shard", mapped(both), {"one.safetensors": a[:-1],
                                                  "two.safetensors": b}, "a shard is cut short")
