# In a folder a file is judged by its suffix as when it is named: what only models are called is
# told however broken; what may be anything, if it is a model, or a pointer or page in its place.
mkdir kinds; foreign state_dict good.pt
python3 - <<'P'
import pickle, struct, zipfile
pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12345\n" % 0
whole = open("good.pt", "rb").read()
broken = {"pointer": pointer, "page": b"<!DOCTYPE html><html><title>Login</title></html>",
          "text": b'{"error":"not found"}', "empty": b"", "zeros": bytes(4096), "one": b"P",
          "noise": bytes(i * 37 % 256 for i in range(5000)), "cut": whole[:300],
          "head": b"GGUF" + struct.pack("<IQQ", 3, 10, 10)}
names = [kind + end for kind in broken for end in
         (".ckpt", ".PT", ".pth", ".gguf", ".onnx", ".pdparams", "-pytorch_model.bin",
          ".bin.index.json", ".safetensors", ".bin", ".npz", ".msgpack", ".h5", ".pkl", ".index")]
for name in names:
    open("kinds/" + name, "wb").write(broken[name.replace("-", ".").split(".")[0]])
P
$SFT check -r kinds 2>note | sed 's/:.*//' >found; echo ${PIPESTATUS[0]}; cat note
# Named, each of them is no model; a folder says so of all that it does not count.
for f in kinds/*; do
    $SFT check "$f" >/dev/null 2>&1; echo $? "$f"
done >named
sed -n 's/^1 //p' named | sort >wrong; sort -o found found
comm -23 found wrong # told, but fine when named
comm -13 found wrong | sed 's/.*\(\.[a-z0-9]*\)$/\1/' | sort | uniq -c | sed 's/^ *//'
# A pickle is sound if it ends.
mkdir pickles
python3 - <<'P'
import pickle
for protocol in (2, 4):
    whole = pickle.dumps({"epoch": list(range(300)), "b": "x" * 200}, protocol)
    open(f"pickles/{protocol}.pt", "wb").write(whole)
    open(f"pickles/cut{protocol}.pt", "wb").write(whole[:150])
P
$SFT check -r pickles; echo $?
# No models: sound files of another kind, and lists of folders that Python reads.
mkdir -p sound/lib/site-packages; echo "import os" >sound/lib/site-packages/a.pth
python3 - <<'P'
import pickle, zipfile
for name in ("files.pt", "office.ckpt", "a.bin"):
    with zipfile.ZipFile("sound/" + name, "w") as file:
        file.writestr("[Content_Types].xml", b"text")
pickle.dump({"epoch": 3, "lr": 0.1}, open("sound/state.pth", "wb"))
open("sound/weights.bin", "wb").write(bytes(i * 37 % 256 for i in range(5000)))
open("sound/data.h5", "wb").write(b"\x89HDF\r\n\x1a\n" + bytes(100))
P
cp every-dtype.safetensors sound
$SFT check -r sound; echo $?
# A model by another name, a link to nothing, a pipe, a part of GGUF without the first.
mkdir odd; cp every-dtype.safetensors odd/model.bin; ln -s gone odd/link.ckpt; mkfifo odd/pipe.pt
printf GGUF >odd/m-00002-of-00003.gguf; cp odd/m-00002-of-00003.gguf odd/n-00002-of-00002.gguf
foreign gguf odd/n-00001-of-00002.gguf
$SFT check -r odd | grep -v "left out"; echo ${PIPESTATUS[0]}
$SFT info -r -f path odd; echo $?
