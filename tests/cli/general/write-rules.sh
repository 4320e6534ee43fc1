# What all commands that write have in common, shown on select.
m=every-dtype.safetensors
s="$SFT select $m --keep *f4*"
$s -o out.safetensors; echo $?
$s -o out.safetensors; echo $?
$s -o out.safetensors --force; echo $?
touch -d 2020-02-02 $m; $s -o old.safetensors --keep-mtime; stat -c %Y old.safetensors; stat -c %Y $m
ln out.safetensors hard.safetensors; $s -o out.safetensors --force; stat -c %h out.safetensors hard.safetensors
mkdir folder; $s -o folder --force; echo $?
$s -o nosuch/out.safetensors; echo $?
ls -A | grep sft-
true
