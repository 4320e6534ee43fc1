"""Every class of the auto mappings of transformers, as save_pretrained writes it."""
import torch
import transformers
from accelerate import init_empty_weights
from transformers.core_model_loading import revert_weight_conversion
from transformers.modeling_utils import _get_tied_weight_keys
from transformers.models.auto import configuration_auto, modeling_auto

from zoo_common import as_json, entry
from zoo_configs import ARGUMENTS, PUBLISHED

MODULES = (transformers, torch)


def tables():
    """Task and table: `causal-lm` of MODEL_FOR_CAUSAL_LM_MAPPING_NAMES; `base`."""
    for name in sorted(dir(modeling_auto)):
        if name.endswith("_MAPPING_NAMES") and not name.startswith("CONFIG"):
            task = name.removesuffix("MAPPING_NAMES").removeprefix("MODEL_").removeprefix("FOR_")
            yield task.strip("_").lower().replace("_", "-") or "base", getattr(modeling_auto, name)


def jobs():
    tasks = {}
    for task, table in tables():
        for model_type, classes in table.items():
            for name in classes if isinstance(classes, (tuple, list)) else (classes,):
                tasks.setdefault(name, {}).setdefault(config_class(name, model_type),
                                                      set()).add(task)
    for name in unlisted(tasks):
        tasks[name] = {getattr(transformers, name).config_class: {"unlisted"}}
    for name, configs in sorted(tasks.items()):
        for config, its in configs.items():
            title = name if len(configs) == 1 else "%s@%s" % (name, config.model_type)
            yield make, title, config.model_type, its, (name, config, {})
    for (name, title), arguments in PUBLISHED.items():
        (config, its), = tasks[name].items()
        yield make, "%s@%s" % (name, title), config.model_type, its, (name, config, arguments)


def unlisted(listed):
    """Classes that no table has: towers with a projection, parts of larger models."""
    for name in sorted(dir(transformers)):
        try:
            cls = getattr(transformers, name)
            is_model = issubclass(cls, transformers.PreTrainedModel) and cls.config_class
        except (AttributeError, ImportError, TypeError):
            continue
        # A base class without a model of its own has neither.
        if is_model and name not in listed and not name.endswith("PreTrainedModel"):
            yield name


def config_class(name, model_type):
    """The one of the table, or where the class is only a part of that model, its own."""
    mapped = configuration_auto.CONFIG_MAPPING[model_type]
    try:
        own = getattr(transformers, name).config_class
    except (AttributeError, ImportError):       # make() will tell why
        own = None
    return mapped if own is None or issubclass(mapped, own) else own


def config_of(cls, name, arguments):
    configs, model_type = configuration_auto.CONFIG_MAPPING, cls.model_type
    if model_type in ("vision-encoder-decoder", "speech-encoder-decoder", "encoder-decoder"):
        encoder = {"vision-encoder-decoder": "vit", "speech-encoder-decoder": "wav2vec2",
                   "encoder-decoder": "bert"}[model_type]
        decoder = configs["bert"](is_decoder=True, add_cross_attention=True)
        return configs[model_type].from_encoder_decoder_configs(configs[encoder](), decoder)
    if model_type in ("vision-text-dual-encoder",):
        return configs[model_type].from_vision_text_configs(configs["vit"](), configs["bert"]())
    config = cls(**arguments)
    left_open = {**ARGUMENTS.get(model_type, {}), **ARGUMENTS.get(name, {})}
    for key, value in left_open.items():
        owner, _, attribute = key.rpartition(".")
        setattr(getattr(config, owner) if owner else config, attribute, value)
    return config


def instance(build):
    """On the meta device, or where a constructor computes, with parameters alone on it."""
    try:
        with torch.device("meta"):
            return build()
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
        try:
            with init_empty_weights():
                return build()
        except Exception:
            raise error from None


def saved(model):
    """The state dict that save_pretrained would write."""
    state = model.state_dict()
    for key in model._keys_to_ignore_on_save or ():
        state.pop(key, None)
    tied = set(_get_tied_weight_keys(model))
    owners = {}
    for name in sorted(state, key=lambda n: n in tied):
        owners.setdefault(id(model.get_parameter_or_buffer(name)), name)
    state = {name: state[name] for name in state if name in set(owners.values())}
    return revert_weight_conversion(model, state)


def declaration(config, name):
    """The keys of config.json that say what the model is."""
    whole = config.to_dict()
    kept = {"architectures": [name], "model_type": whole.get("model_type", config.model_type)}
    if "tie_word_embeddings" in whole:
        kept["tie_word_embeddings"] = whole["tie_word_embeddings"]
    for key, value in whole.items():
        if isinstance(value, dict) and value.get("model_type"):
            kept[key] = {"model_type": value["model_type"]}
    return {"config.json": as_json(kept)}


def make(title, identity, tasks, name, its_config, arguments):
    cls = getattr(transformers, name)
    config = config_of(its_config, name, arguments)
    model = instance(lambda: cls(config))
    return entry(title, identity, tasks, saved(model), texts=declaration(model.config, name),
                 metadata={"format": "pt"})


def versions():
    return "transformers %s" % transformers.__version__
