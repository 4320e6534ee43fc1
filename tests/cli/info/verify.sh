# What is recorded is computed, and nothing else.
$SFT info --verify lora; echo $?
$SFT info --verify --json lora | pyjson '[sorted(j["results"][0]["hashes"]["computed"]), j["results"][0]["hashes"]["mismatches"]]'
$SFT info --verify --json quantised.safetensors | pyjson 'j["results"][0]["hashes"]["computed"]'; echo $?
$SFT info --verify --hash blake3 --json quantised.safetensors | pyjson 'list(j["results"][0]["hashes"]["computed"])'
# Edited metadata: other file hashes, the same weights. The sidecar is believed.
edit() {
    python3 - "$@" <<'P'
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n, = struct.unpack("<Q", b[:8])
h = json.loads(b[8:8 + n])
for pair in sys.argv[3:]:
    k, _, v = pair.partition("=")
    h["__metadata__"][k] = v
    if not v:
        del h["__metadata__"][k]
t = json.dumps(h).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(t)) + t + b[8 + n:])
P
}
mkdir e && cp lora/neon-city.civitai.info e/neon.civitai.info
edit lora/neon-city.safetensors e/neon.safetensors note=edited
$SFT info --verify e; echo $?
$SFT info --verify --json e | pyjson '[(m["algo"], m["known"]) for m in j["results"][0]["hashes"]["mismatches"]]'
$SFT info --hash sha256 e >/dev/null; echo $?
$SFT info --verify --json e | pyjson '[(s["match"]) for s in j["results"][0]["sidecars"]]'
$SFT info --verify -f name,civitai.match,civitai.trust,civitai.matches_file e
# Another model's sidecar: not believed.
mkdir o && cp lora/neon-city.civitai.info o/x.civitai.info
{ cat lora/neon-city.safetensors | head -c -1; printf x; } >o/x.safetensors
$SFT info -f civitai.trust,civitai.matches_file o
$SFT info --verify -f civitai.match,civitai.trust,civitai.matches_file o; echo $?
$SFT info --verify -f hashes.mismatches.algo,hashes.mismatches.known o
# Another order of the bytes of a CRC-32 is the same.
mkdir r && cp lora/neon-city.safetensors r/x.safetensors
sed 's/94067DB2/B27D0694/' lora/neon-city.civitai.info >r/x.civitai.info
grep -c B27D0694 r/x.civitai.info; $SFT info --verify -f hashes.mismatches r; echo $?
# LyCORIS hashes in an order of its own: shown, but no failure. Its near-miss fails.
mkdir l
x=0x$(printf 'ab%.0s' {1..32})
edit lora/neon-city.safetensors l/a.safetensors sshs_model_hash=$x modelspec.hash_sha256= ss_network_module=lycoris.kohya sshs_legacy_hash=
edit lora/neon-city.safetensors l/b.safetensors sshs_model_hash=$x modelspec.hash_sha256= ss_network_module=networks.lora sshs_legacy_hash=
$SFT info --verify l/a.safetensors | tail -n 2; $SFT info --verify l/a.safetensors >/dev/null; echo $?
$SFT info --verify l/b.safetensors | tail -n 2; $SFT info --verify l/b.safetensors >/dev/null; echo $?
$SFT info --verify l; echo $?
$SFT info --verify --json l | pyjson '[[(m["algo"], m["known"]) for m in r["hashes"]["mismatches"]] for r in j["results"]]'
# A component that is not what is recorded.
mkdir -p p/unet && cp l/b.safetensors p/unet/b.safetensors && echo '{"_class_name":"X"}' >p/model_index.json
$SFT info --verify p; echo $?
