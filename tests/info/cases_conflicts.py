"""Claims that contradict each other, and beside each two that do not."""
import json

from compose import Model, lora, peft
from parts import SDXL_UNET, flux_bfl, flux_kohya, flux_model, llama, sd1_lora, sd1_unet, sdxl_lora, sdxl_unet

J = json.dumps
SHA = "0123456789abcdef" * 4
INFO = {"id": 22, "modelId": 11, "name": "v1", "baseModel": "SDXL 1.0", "trainedWords": ["fox"],
        "model": {"name": "Foxes", "type": "LORA"}, "files": []}


def xl(meta=None, **files):
    made = {"x.safetensors": Model(sdxl_lora(8, 8), meta)}
    made.update({name.replace("__", "."): content for name, content in files.items()})
    return made


def info(**changes):
    return dict(INFO, **changes)


def files(sha, kb, auto=None):
    hashes = {"SHA256": sha}
    if auto:
        hashes["AutoV3"] = auto
    return [{"name": "x.safetensors", "sizeKB": kb, "type": "Model", "primary": True,
             "hashes": hashes}]


CASES = {
    "architecture.header": xl({"ss_base_model_version": "sd_v1"}),
    "architecture.header-near": xl({"ss_base_model_version": "sdxl_base_v1-0"}),
    "architecture.modelspec": Model(flux_kohya(), {
        "modelspec.architecture": "stable-diffusion-xl-v1-base/lora"}),
    "architecture.child": Model(flux_kohya(), {"modelspec.architecture": "flux-1-dev/lora"}),
    "architecture.two": Model(flux_kohya() + lora(SDXL_UNET, 16, 16),
                              {"ss_base_model_version": "flux1"}),
    "architecture.sidecar": xl(x__civitai__info=info(baseModel="SD 1.5")),
    "architecture.family": {"x.safetensors": Model(llama()), "config.json": {"model_type": "bert"}},
    "architecture.family-near": {"x.safetensors": Model(llama()),
                                 "config.json": {"model_type": "mixtral"}},
    "architecture.pony": xl({"ss_base_model_version": "sdxl_base_v1-0"},
                            x__civitai__info=info(baseModel="Pony")),
    "base_model": xl(x__civitai__info=info(baseModel="Pony"),
                     **{"x__cm-info__json": {"ModelId": 11, "VersionId": 22, "ModelName": "Foxes",
                                             "BaseModel": "Illustrious", "Source": "Civitai"}}),
    "base_model.parent": xl(x__civitai__info=info(baseModel="Pony"),
                            **{"x__cm-info__json": {"ModelId": 11, "VersionId": 22,
                                                    "ModelName": "Foxes", "Source": "Civitai",
                                                    "BaseModel": "SDXL 1.0"}}),
    "kind": xl(x__civitai__info=info(model={"name": "Foxes", "type": "Checkpoint"})),
    "kind.near": xl(x__civitai__info=info(model={"name": "Foxes", "type": "LoCon"})),
    "prediction": {"x.safetensors": Model(
        Model(sdxl_unet(), None, "model.diffusion_model.").rows + [("v_pred", "F32", [0], None)],
        {"modelspec.prediction_type": "epsilon"})},
    "prediction.near": {"x.safetensors": Model(
        Model(sdxl_unet(), None, "model.diffusion_model.").rows + [("v_pred", "F32", [0], None)],
        {"modelspec.prediction_type": "v"})},
    "rank": xl({"ss_network_dim": "64", "ss_network_alpha": "8"}),
    "rank.dynamic": xl({"ss_network_dim": "Dynamic", "ss_network_alpha": "Dynamic"}),
    "alpha": xl({"ss_network_dim": "8", "ss_network_alpha": "4"}),
    "alpha.near": xl({"ss_network_dim": "8", "ss_network_alpha": "8.0"}),
    "civitai": xl({"ssmd_source": "https://civitai.com/models/33"},
                  x__civitai__info=INFO),
    "civitai.near": xl({"ssmd_source": "https://civitai.com/models/11"},
                       x__civitai__info=INFO),
    "version": xl(x__civitai__info=INFO, x__json={
        "description": "", "activation text": "fox", "modelId": 11, "modelVersionId": 23}),
    "names": xl({"ss_output_name": "one", "modelspec.title": "Two", "modelspec.author": "a",
                 "author": "b", "modelspec.date": "2024-01-01"}, x__civitai__info=INFO),
    "size-differs": xl(x__civitai__info=info(files=files(SHA, 5.0))),
    "sha-differs": xl(x__civitai__info=info(files=files(SHA, 5.0, "aabbccddeeff"))),
    "autov2-differs": xl(**{"x.cm-info.json": {"ModelId": 1, "VersionId": 2, "Hashes": {
        "SHA256": SHA, "AutoV2": "abababab01"}}}),
    "size": {"x.safetensors": Model("emb_params F32 4,768"), "x.civitai.info": info(
        model={"name": "Foxes", "type": "TextualInversion"}, baseModel="SD 1.5",
        files=files(SHA, 12.1))},
    "weights": {"x.safetensors": Model("emb_params F32 4,768", {"note": "edited"}),
                "x.civitai.info": info(
        model={"name": "Foxes", "type": "TextualInversion"}, baseModel="SD 1.5",
        files=files(SHA, 12.1, "f3cc10313642"))},
}
OPTIONS = {"autov2-differs": ["--hash", "autov2"],
           "sha-differs": ["--hash", "sha256,autov3"],
           "weights": ["--hash", "sha256,autov3"]}
