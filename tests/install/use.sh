#!/bin/sh
# An installed command on files of its own making: what it says and its exit statuses.
# usage: use.sh COMMAND [WORD...]     e.g. use.sh python3 -m libsafetensors
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "use.sh: $*" >&2; exit 1; }

# usage: says STATUS TEXT WORD...: the command with these words ends so and says the text.
says() {
    wanted=$1 text=$2 status=0
    shift 2
    said=$("$@" 2>&1) || status=$?
    [ "$status" = "$wanted" ] || fail "$*: exit $status, expected $wanted: $said"
    case $said in
        *"$text"*) ;;
        *) fail "$*: not \"$text\": $said" ;;
    esac
}

{
    printf '\110\0\0\0\0\0\0\0'
    printf '%-72s' '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    printf '\0\0\200?\0\0\0@'
} >"$folder/model.safetensors"
head -c 84 "$folder/model.safetensors" >"$folder/damaged.safetensors"
says 0 safetensors "$@" --version
version=$said
says 0 "" "$@" check "$folder/model.safetensors"
says 0 F32 "$@" info "$folder/model.safetensors"
says 0 "1 2" "$@" cat "$folder/model.safetensors" w
says 0 "" "$@" meta set "$folder/model.safetensors" title "A test"
says 0 "A test" "$@" meta get "$folder/model.safetensors" title
says 1 damaged.safetensors "$@" check "$folder/damaged.safetensors"
says 2 "" "$@" info "$folder/absent.safetensors"
echo "$version" | sed q
