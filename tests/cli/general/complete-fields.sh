# bash completes names of fields, also behind a comma.
eval "$($SFT __completion bash)"
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _safetensors
    echo "${*: -1}: ${COMPREPLY[*]}"
}
try safetensors info -f adapter.ra
try safetensors info --fields name,a11
try safetensors info --fields = name,rank,hashes.rec
try safetensors info -f kin
try safetensors find -f kin
