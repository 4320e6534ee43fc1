# Wide characters, marks, escape sequences, line ends, floods: columns stay columns.
here=$(dirname "$BASH_ENV")
export NO_COLOR=1
python3 - <<'END'
import json, os, struct, sys
def st(path, meta):
    header = json.dumps({"__metadata__": meta, "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}},
                        ensure_ascii=False).encode()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + b"\0")
titles = {
    "wide": "夜の街のネオン風景モデル・第三版（完全版）高解像度対応",
    "emoji": "🚀✨🔥 Rocket 🧑‍🚀 style ❤️ 🇩🇪 v2 with many words behind it, and more of them",
    "marks": "Z̷̢̛a̵̡l̴̨g̸ó̶ ñ é คำไทยยาวมากมาย हिन्दी नमूना " * 3,
    "flood": "e" + "\u0301" * 20000,
    "escape": "\x1b[2J\x1b]0;owned\x07red\x1b[31m and more text that goes on",
    "bidi": "abc\u202egnp.exe\u2066 \u200f def" * 4,
    "lines": "one\ntwo\r\nthree\tfour\x0bfive\u2028six\u2029seven\x85eight",
    "long": "x" * 65536,
    "wide-long": "猫" * 21845,
    "hangul": "\u1112\u1161\u11ab\u1100\u1173\u11af " * 9,
    "narrow": "\u0301\u0301 only marks",
    "blank": " " * 70 + "end",
}
for name, title in titles.items():
    st("t/%s.safetensors" % name, {"modelspec.title": title, "modelspec.trigger_phrase": title,
                                   "modelspec.date": title[:40], "ss_sd_model_name": title,
                                   "ss_base_model_version": title})
for name in ("\u202etxt", "猫" * 60, "-rf", "a  b", "n" * 240):
    st("t/files/%s.safetensors" % name, {})
END
for columns in 60 80 200 0; do
    if [ $columns = 0 ]; then $SFT info -r t >list; else python3 "$here/terminal.py" $columns $SFT info -r t >list; fi
    python3 "$here/info/fits.py" $columns t unnamed <list
done
python3 "$here/terminal.py" 80 $SFT info -r t
python3 "$here/terminal.py" 80 $SFT info -r --group-by folder --sort base t >list
python3 "$here/info/fits.py" 80 t unnamed <list
$SFT info -r --group-by base t | LC_ALL=C grep -c "$(printf '\033')"
