# bash, zsh and fish themselves complete verbs, values of options, lists and names of tensors;
# names that a shell could run are left out.
python3 - <<'P'
import json, struct
names = ["model.a.weight", "model.b.weight", "$(touch ran)", "`touch ran`", "a b", "x;touch ran", "--help", "\x1b[31m"]
head = json.dumps({n: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, n in enumerate(names)}).encode()
open("m.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + bytes(len(names)))
P
mkdir bin zsh; ln -s "$SFT" bin/safetensors; PATH=$PWD/bin:$PATH
for shell in bash fish; do safetensors __completion $shell > script.$shell; done
safetensors __completion zsh > zsh/_safetensors
in_bash() {
    bash --norc -c '. ./script.bash; COMP_LINE=$1; read -ra COMP_WORDS <<<"$1"
        [[ $1 == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _safetensors; printf "%s\n" "${COMPREPLY[@]}"' x "$1"
}
in_zsh() { zsh -f "$(dirname "$BASH_ENV")/complete.zsh" "$PWD/zsh" "$1"; }
in_fish() { HOME=$PWD fish --no-config -c 'source script.fish; complete -C"'"$1"'"' | cut -f1; }
try() {
    echo "$1"
    for shell in bash zsh fish; do echo "  $shell: $("in_$shell" "$1" | sed 's/.*,//' | sort -u | tr '\n' ' ')"; done
}
try 'safetensors chec'
try 'safetensors meta s'
try 'safetensors dataset ver'
try 'safetensors convert m.safetensors --dtype F8_E5'
try 'safetensors hash --algo sha256,sshs'
try 'safetensors ls --sort '
try 'safetensors convert --shared '
try 'safetensors convert --quantised '
try 'safetensors convert --sparse d'
try 'safetensors cat --as n'
try 'safetensors info -f name,adapter.rank.m'
try 'safetensors cat m.safetensors model'
try 'safetensors cat m.safetensors '
try 'safetensors rm-tensor m.safetensors model.a.weight model'
try 'safetensors cat nosuch.safetensors mod'
ls ran 2>/dev/null
mkfifo pipe
export -f in_bash in_fish
for shell in bash fish; do
    timeout 5 bash -c "in_$shell 'safetensors cat pipe mod'" >/dev/null 2>&1
    [ $? = 124 ] && echo "$shell waits for a pipe"
done
true
