# What all commands that write have in common, shown on select.
m=every-dtype.safetensors
s="$SFT select $m --keep *f4*"
$s -o out.safetensors; echo $?
$s -o out.safetensors; echo $?
$s -o out.safetensors --force; echo $?
chmod 600 $m; $s -o private.safetensors; stat -c %a private.safetensors
chmod 640 out.safetensors; $s -o out.safetensors --force; stat -c %a out.safetensors
touch -d 2020-02-02 $m; $s -o old.safetensors --keep-mtime; stat -c %Y old.safetensors; stat -c %Y $m
ln -s out.safetensors link.safetensors
$s -o link.safetensors --force 2>&1 | sed "s,$PWD,HERE,"
$s -o link.safetensors --force --follow; [ -L link.safetensors ] && echo still a link
ln out.safetensors hard.safetensors; $s -o out.safetensors --force; stat -c %h out.safetensors hard.safetensors
mkdir folder; $s -o folder --force; echo $?
$s -o nosuch/out.safetensors; echo $?
mkdir -p hub/blobs hub/snapshots; cp $m hub/blobs/0123; ln -s ../blobs/0123 hub/snapshots/m.safetensors
printf '' >empty.npy; $SFT add hub/snapshots/m.safetensors x=empty.npy 2>&1 | sed "s,$PWD,HERE,"
ls -A | grep sft-
true
