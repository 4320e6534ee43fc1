# Many files in one call: each atomic, a failure does not stop the rest, a summary at the end.
{
cp every-dtype.safetensors a.safetensors; cp every-dtype.safetensors b.safetensors
mkdir -p tree/sub; cp a.safetensors tree/one.safetensors; cp quantised.safetensors tree/sub/two.safetensors
$SFT meta set a.safetensors b.safetensors author Ada license MIT; echo $?
$SFT meta set a.safetensors nosuch.safetensors b.safetensors author Bob; echo $?
$SFT meta set -r tree author Ada; echo $?
$SFT meta set -r tree author Ada; echo $?
$SFT meta rm -r tree author nosuch; echo $?
# Into a folder, under the same names; what would not change is not written unless --copy says so.
$SFT meta set -r tree author Ada -o out/; echo $?; find out | sort
$SFT meta set a.safetensors b.safetensors author Bob -o same/; echo $?; find same
$SFT meta set a.safetensors b.safetensors author Bob -o same/ --copy; echo $?; find same | sort
$SFT meta set a.safetensors author Eve -o same; echo $?
$SFT meta set a.safetensors author Eve -o same --force; $SFT meta get same/a.safetensors author
$SFT meta set a.safetensors author Eve -o fresh/ --dry-run; ls fresh 2>&1 | sed 's/.*: //'
# Two results of one name, or a file for several: refused before anything is written.
mkdir x y; cp a.safetensors x/m.safetensors; cp a.safetensors y/m.safetensors
$SFT meta set x/m.safetensors y/m.safetensors k v -o z/; echo $?; ls z 2>&1 | sed 's/.*: //'
$SFT meta set a.safetensors b.safetensors k v -o one.safetensors; echo $?
$SFT meta set -r sharded k v -o copy/; echo $?
$SFT meta set a.safetensors b.safetensors author Zoe --json | cut -c1-90
} | plain
