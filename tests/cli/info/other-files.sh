# Files that are named like models in other formats and are none: archives of other things, also
# damaged ones, pickles without arrays, anything else. They are counted; a damaged model is not.
mkdir m; foreign state_dict m/good.pt; foreign gguf m/small.gguf
python3 - <<'P'
import pickle, zipfile
def archive(name, entries):
    with zipfile.ZipFile("m/" + name, "w") as file:
        for entry in entries:
            file.writestr(entry, b"text")
archive("office.bin", ["[Content_Types].xml", "word/document.xml"])
archive("files.pt", ["a.txt", "b/c.txt"])
archive("java.ckpt", ["META-INF/MANIFEST.MF", "A.class"])
archive("keras.pth", ["config.json", "model.weights.h5"])
archive("empty.bin", [])
archive("cut.bin", ["a.txt", "b.txt"])
archive("before.pt", ["a.txt"])
data = open("m/cut.bin", "rb").read()
open("m/cut.bin", "wb").write(data[:-30])
data = open("m/before.pt", "rb").read()
open("m/before.pt", "wb").write(data[:4] + b"\xff" + data[5:])
pickle.dump({"epoch": 3, "lr": 0.1}, open("m/state.bin", "wb"))
pickle.dump([1, 2, 3], open("m/list.ckpt", "wb"), 0)
open("m/random.ckpt", "wb").write(bytes(i * 37 % 256 for i in range(5000)))
open("m/head.bin", "wb").write(b"PK\3\4" + b"junk" * 100)
open("m/short.pt", "wb").write(b"P")
open("m/zeros.bin", "wb").write(bytes(4096))
open("m/nothing.bin", "wb").write(b"")
open("m/files.zip", "wb").write(open("m/files.pt", "rb").read())
P
$SFT info -r m; echo $?
for c in "ls -r" "check -r" "dup -r" "hash -r --algo content"; do $SFT $c m >listed; echo "$c: $?"; done
head -c 300 m/good.pt >m/damaged.pt
$SFT info -r m; echo $?
