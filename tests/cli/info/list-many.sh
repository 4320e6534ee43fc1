# More models than the columns are decided by: later rows are cut to the same columns.
here=$(dirname "$BASH_ENV")
export NO_COLOR=1
python3 - <<'END'
import os, struct
header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
os.mkdir("t")
for i in range(1203):
    name = "model-of-a-kind-%04d" % i + "-with-quite-a-long-name" * (i == 1100) * 4
    with open("t/%s.safetensors" % name, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + b"\0")
END
python3 "$here/terminal.py" 80 $SFT info t >list
python3 "$here/info/fits.py" 80 t unnamed <list
sed -n '1,2p;1002p;1101,1103p;$p' list
$SFT info t | awk '{ print length() }' | sort | uniq -c
$SFT info --sort name --reverse t | sed -n '2p;1204,$p'
