"""What asks CivitAI, against a server of the test's own: infos, updates, online_plan, catalog."""
import hashlib
import json
import pathlib
import runpy

import pytest

import libsafetensors as st
from libsafetensors import _command
from reading import pack

Site = runpy.run_path(str(pathlib.Path(__file__).resolve().parents[1] / "online/server.py"))["Site"]


@pytest.fixture
def site():
    with Site() as site:
        yield site


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "models" / "neon.safetensors"
    path.parent.mkdir()
    path.write_bytes(pack({"lora_unet_x.lora_up.weight": ("U8", [64], bytes(range(64)))}))
    return path


def publish(site, model):
    data = model.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    site.add({"sha256": hashlib.sha256(data).hexdigest(), "size": len(data),
              "autov3": hashlib.sha256(data[begin:]).hexdigest()[:12]})


def sidecar(model):
    (model.parent / "neon.civitai.info").write_text(json.dumps({
        "id": 7, "modelId": 70, "name": "v2", "baseModel": "SDXL 1.0", "trainedWords": ["x"],
        "publishedAt": "2024-05-01T10:00:00.000Z",
        "model": {"name": "Neon City", "type": "LORA", "allowNoCredit": True,
                  "allowCommercialUse": ["Image"], "allowDerivatives": True,
                  "allowDifferentLicense": True}}))


def test_facts(model, site, tmp_path):
    publish(site, model)
    told, = st.infos(model, online=True, civitai_url=site.url, cache=tmp_path / "digests")
    assert told["model"]["name"]["value"] == "Neon City"
    assert told["model"]["name"]["source"] == "online:civitai"
    assert not list(model.parent.glob("*.civitai.info"))
    st.infos(model, online=True, save=True, civitai_url=site.url)
    assert (model.parent / "neon.civitai.info").exists()
    assert {one[0] for one in site.log} <= {"GET", "POST"}
    page = st.catalog(model, tmp_path / "page.html", online=True, civitai_url=site.url,
                      cache=tmp_path / "digests", threads=1)
    assert page["models"] == 1 and b"Neon City" in (tmp_path / "page.html").read_bytes()


def test_the_plan_sends_nothing(model, site, tmp_path):
    plan = st.online_plan(model.parent, recursive=True)
    assert (plan.files, plan.hashed, plan.bytes) == (1, 1, model.stat().st_size)
    assert plan.requests_by_sha256 == 1 and plan.requests_one_by_one_most is None
    assert st.online_plan([model], updates=True).requests_one_by_one_most is not None
    assert st.online_plan(model, where="kind=checkpoint").files == 0 and not site.log
    with pytest.raises(FileNotFoundError):
        st.online_plan(tmp_path / "nope")


def test_updates(model, site):
    publish(site, model)
    sidecar(model)
    one, = st.updates(model, civitai_url=site.url).models
    assert (one.status, one.model_id, one.version_id, one.newer) == ("current", 70, 7, ())
    assert [(change.what, change.recorded) for change in one.permissions][:1]
    site.publish(9, name="v3", base="Flux.1 D")
    told = st.updates([model.parent], recursive=True, civitai_url=site.url, threads=1)
    assert told.models[0].status == "newer" and told.models[0].newer_count == 1
    version, = told.models[0].newer
    assert (version.version_id, version.name, version.base_model, version.have) == (
        9, "v3", "Flux.1 D", None)
    assert st.updates(model, same_base=True, civitai_url=site.url).models[0].newer == ()


def test_models_that_cannot_be_read_are_told(model, site):
    publish(site, model)
    (model.parent / "bad.safetensors").write_bytes(b"bad")
    told = st.updates(model.parent, civitai_url=site.url)
    assert [pathlib.Path(one.path).name for one in told.failed] == ["bad.safetensors"]
    assert len(told.models) == 1


def test_a_server_that_does_not_answer(model, site):
    url = "http://127.0.0.1:9"
    with pytest.warns(RuntimeWarning, match="127.0.0.1:9"):
        told, = st.infos(model, online=True, civitai_url=url)
    assert told["ok"]
    with pytest.warns(RuntimeWarning):
        assert st.updates(model, civitai_url=url).models[0].status == "unanswered"


def test_without_anything_that_asks(model, monkeypatch):
    """Nothing is no answer."""
    said = "safetensors: expected libcurl for requests, found none that works on this machine\n"
    monkeypatch.setattr(_command, "run", lambda words, tick=None: ('{"results": []}', said, 2))
    for ask in (lambda: st.infos(model, online=True), lambda: st.updates(model)):
        with pytest.raises(OSError, match="expected libcurl"):
            ask()
