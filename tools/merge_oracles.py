"""Makes tests/merge/cases.safetensors: what mergekit's own functions make of the same tensors.

    merge_oracles.py OUT.safetensors

in an environment with torch (CPU) and mergekit 0.1.5 (tools/merge_oracles.sh). OUT stays if it has
the same but for rounding in F64, which hangs on the processor; else it is told what differs. Tensors "in/MODEL/NAME" are the inputs, F32
and BF16 (models "base16", ...); "want/CASE/NAME" what the method makes of them in F64, before it is
rounded. The metadata "cases" is a list: name, method, models (the base first, if there is one),
whether there is one, weights, parameters (as the command takes them). Random masks have no case:
tests/merge/run.py looks at their statistics. Where numbers are equal, which of them are the largest
is not said by mergekit; such cases are left out.
"""
import json
import os
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from mergekit import merge_methods
from mergekit.config import evaluate_setting
from mergekit.merge_methods.base import TensorGroup

SHAPES = {"model.embed_tokens.weight": (9, 6), "model.norm.weight": (10,),
          **{f"model.layers.{i}.{name}": shape for i in range(3) for name, shape in
             (("attn.weight", (12, 10)), ("conv.weight", (4, 3, 2, 2)), ("bias", (10,)))}}


def models():
    generator = torch.Generator().manual_seed(42)
    out = {"base": {name: torch.randn(shape, generator=generator) * 0.3
                    for name, shape in SHAPES.items()}}
    for i in range(4):
        out[f"m{i}"] = {name: value + torch.randn(value.shape, generator=generator) * 0.05
                        for name, value in out["base"].items()}
    # what formulas have branches for: opposite, parallel, zero and equal tensors
    out["m1"]["model.layers.0.bias"] = -out["m0"]["model.layers.0.bias"]
    out["m1"]["model.layers.1.bias"] = out["m0"]["model.layers.1.bias"] * 2
    out["m1"]["model.layers.2.bias"] = torch.zeros(10)
    out["m2"]["model.layers.2.conv.weight"] = out["base"]["model.layers.2.conv.weight"].clone()
    for i, values in enumerate(((0.3, 0.5, -0.2, 0.0), (-0.5, 0.7, -0.25, 0.1),
                                (0.001, -2.0, 0.003, -0.4), (-0.7, 0.2, 0.8, 0.6))):
        out[f"s{i}"] = {f"{n}.weight": torch.tensor(value).reshape(shape) for n, (value, shape) in
                        enumerate(zip(values, ((), (1,), (1, 1), ())))}
    for name in list(out):
        out[name + "16"] = {k: v.bfloat16() for k, v in out[name].items()}
    return out


def layer_of(name):
    parts = name.split(".")
    return int(parts[2]) / 2 if parts[1] == "layers" else 0


def setting(text, name):
    """A value as the command takes it: a number, a word, or a list for the layers."""
    one = lambda value: value == "true" if value in ("true", "false") else float(value)
    values = [one(value) for value in text.split(",")]
    return evaluate_setting(name, values if len(values) > 1 else values[0], layer_of(name),
                            validate=lambda value: value)


def merged(case, inputs, name):
    method = merge_methods.get(case["method"])
    tensors = [inputs[m][name].double() for m in case["models"]]
    group = TensorGroup.from_tensors(tensors, base_index=0 if case["base"] else None, name=name)
    others = tensors[1:] if case["base"] and case["method"] not in ("slerp",) else tensors
    parameters = {}
    for word in case["params"]:
        key, value = word.split("=")
        key, _, pattern = key.partition("@")
        if pattern and pattern.strip("*") not in name:
            continue
        if key in parameters:
            continue
        parameters[key] = setting(value, name)
    known = {p.name: p for p in method.spec.parameters}
    first = 1 if case["base"] else 0
    for key in list(parameters):
        if known[key].scope.name != "SHARED":
            parameters[key] = {i + first: parameters[key] for i in range(len(others))}
    if "weight" in known:
        parameters["weight"] = {i + first: w for i, w in enumerate(case["weights"])}
    (out,) = method([group], parameters=parameters)
    return out


CASES = []


def case(name, method, models, *params, base=False, weights=None):
    count = len(models) - base
    for short in ("", "16"):
        CASES.append({"name": name + short, "method": method, "models": [m + short for m in models],
                      "base": base, "weights": weights or [1.0] * count, "params": list(params)})


def cases():
    two, three = ["m0", "m1"], ["m0", "m1", "m2"]
    case("linear", "linear", three, weights=[0.5, 0.3, 0.4])
    case("linear_plain", "linear", three, "normalize=false", weights=[0.5, -0.3, 0.4])
    case("linear_one", "linear", ["m0"], weights=[3.0])
    for t in ("0", "0.3", "1", "1.5"):
        case("slerp_" + t, "slerp", two, "t=" + t, base=True)
    case("slerp_layers", "slerp", two, "t@*attn*=0,0.5,0.2,1", "t=0.4", base=True)
    case("nuslerp", "nuslerp", two, weights=[0.3, 0.9])
    case("nuslerp_base", "nuslerp", ["base", "m0", "m2"], base=True, weights=[0.3, 0.9])
    case("nuslerp_lines", "nuslerp", ["m0", "m2"], "nuslerp_flatten=false", weights=[0.3, 0.9])
    case("nuslerp_lines_base", "nuslerp", ["base", "m0", "m2"], "nuslerp_flatten=false", base=True,
         weights=[0.3, 0.9])
    case("nuslerp_columns", "nuslerp", ["m0", "m2"], "nuslerp_flatten=false",
         "nuslerp_row_wise=true", weights=[0.3, 0.9])
    case("nuslerp_columns_base", "nuslerp", ["base", "m0", "m2"], "nuslerp_flatten=false",
         "nuslerp_row_wise=true", base=True, weights=[1.0, -1.0])
    case("multislerp", "multislerp", ["m0", "m2", "m3"], weights=[0.2, 0.5, 0.9])
    case("multislerp_base", "multislerp", ["base", "m0", "m2", "m3"], "normalize_weights=false",
         base=True, weights=[0.2, 0.5, 0.9])
    case("multislerp_two", "multislerp", two, weights=[0.5, 0.5])
    case("karcher", "karcher", ["m0", "m2", "m3"])
    case("karcher_four", "karcher", ["base", "m0", "m1", "m2"], "max_iter=30", "tol=1e-9")
    case("task", "task_arithmetic", ["base", *three], "lambda=0.7", base=True,
         weights=[0.5, -0.3, 0.4])
    case("task_normal", "task_arithmetic", ["base", *three], "normalize=true", base=True,
         weights=[0.5, 0.3, 0.4])
    case("task_layers", "task_arithmetic", ["base", *two], "lambda=0.2,1", base=True,
         weights=[0.5, 0.3])
    for density in ("0.2", "0.5", "0.01", "0", "1"):
        case("ties_" + density, "ties", ["base", *three], "density=" + density, base=True,
             weights=[0.5, 0.3, 0.4])
    case("ties_plain", "ties", ["base", *three], "density=0.6", "normalize=false", "lambda=1.2",
         "rescale=true", base=True, weights=[0.5, -0.3, 0.4])
    case("ties_one", "ties", ["base", "m3"], "density=0.33", base=True)
    case("dare_all", "dare_ties", ["base", *three], base=True, weights=[0.5, 0.3, 0.4])
    for density, gamma in (("0.5", "0.1"), ("0.9", "0.3"), ("1", "0.1"), ("0", "0.1")):
        for method in ("breadcrumbs", "breadcrumbs_ties"):
            case(f"{method}_{density}", method, ["base", *three], "density=" + density,
                 "gamma=" + gamma, base=True, weights=[0.5, 0.3, 0.4])
    case("stock", "model_stock", ["base", *three], base=True)
    case("stock_two", "model_stock", ["base", "m0", "m3"], base=True)
    case("stock_lines", "model_stock", ["base", *three], "filter_wise=true", base=True)
    for top in ("1", "0.5", "0.1", "0"):
        case("sce_" + top, "sce", ["base", *three], "select_topk=" + top, base=True)
    case("nearswap", "nearswap", ["m0", "m2"], "t=0.02", base=True)
    case("passthrough", "passthrough", ["m0"], "scale=0.3")
    # tensors of one number
    some, equal = ["s0", "s1", "s2"], [0.5, 0.5]
    for method in ("linear", "multislerp", "karcher", "nuslerp", "slerp"):
        case("one_" + method, method, some[:2] if method in ("slerp", "nuslerp") else some,
             *(["t=0.3"] if method == "slerp" else []), base=method == "slerp",
             weights=[0.2, 0.9] if method == "nuslerp" else [0.2, 0.5, 0.9])
    case("one_multislerp_two", "multislerp", some[:2], weights=equal)
    case("one_multislerp_small", "multislerp", some[1:], weights=equal)
    case("one_multislerp_base", "multislerp", [*some, "s3"], base=True, weights=[0.2, 0.5, 0.9])
    case("one_multislerp_plain", "multislerp", some, "normalize_weights=false", "eps=0.001",
         weights=[0.2, -0.5, 0.9])
    for method in ("task_arithmetic", "model_stock", "sce"):
        case("one_" + method, method, [*some, "s3"], base=True, weights=[0.2, 0.5, 0.9])
    for method in ("ties", "breadcrumbs", "breadcrumbs_ties"):
        case("one_" + method, method, [*some, "s3"], "density=0.6", base=True,
             weights=[0.2, 0.5, 0.9])


def unsure(case, inputs, name):
    """Whether equal numbers stand where a mask ends, or rounding decides whether two vectors are
    opposite."""
    if case["method"] == "nuslerp" and "m1" in "".join(case["models"]) and name.endswith("0.bias"):
        return True
    if not case["name"].endswith("16"):
        return False
    return case["method"] in ("ties", "breadcrumbs", "breadcrumbs_ties", "sce") and not any(
        word in ("density=1", "select_topk=1", "density=0", "select_topk=0")
        for word in case["params"])


def main():
    inputs, tensors, kept = models(), {}, []
    cases()
    for model, values in inputs.items():
        tensors.update({f"in/{model}/{name}": value for name, value in values.items()})
    for one in CASES:
        wanted = {}
        for name in inputs[one["models"][0]]:
            if unsure(one, inputs, name):
                continue
            try:
                wanted[f"want/{one['name']}/{name}"] = merged(one, inputs, name).double()
            except ValueError as error:
                print(one["name"], name, error)
        if wanted:
            kept.append(one)
            tensors.update(wanted)
    told = differing(sys.argv[1], tensors, json.dumps(kept))
    print(len(kept), "cases:", told or "as they are recorded")
    if told:
        save_file({k: v.contiguous().clone() for k, v in tensors.items()}, sys.argv[1],
                  {"cases": json.dumps(kept)})
    return bool(told)


def differing(path, tensors, notes):
    """What is not as it is in the file, or nothing."""
    if not os.path.exists(path):
        return "new"
    with safe_open(path, "pt") as old:
        if old.metadata() != {"cases": notes} or set(old.keys()) != set(tensors):
            return "other cases than those recorded"
        others = [k for k, v in tensors.items() if not (
            torch.equal(old.get_tensor(k), v) or k.startswith("want/") and
            (old.get_tensor(k) - v).abs().max() <= 1e-13 * v.abs().max())]
    return ", ".join(others) and "other values in " + ", ".join(others)


sys.exit(main())
