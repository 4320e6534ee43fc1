# A crash between the two renames of a replacement, as sfti_os_rename has them on Windows.
m=every-dtype.safetensors; cp $m keep; old=.$m.sft-0123abcv.old
mv $m $old
$SFT info $m; echo $?
$SFT check --json $m | pyjson 'j["results"][0]["error"]["code"]'
$SFT repair --clean . --dry-run
$SFT meta recover $m; echo $?; cmp $m keep; ls -A | grep -F .old
$SFT meta recover $m
mv $m $old; $SFT meta recover --json $m | pyjson 'j["results"][0]["recovered"]'
# An edit does not: the file may have been removed since.
mv $m $old; $SFT meta set $m k v; echo $?; $SFT rename $m --map a=b; ls $m; mv $old $m
# The index, and a shard of it.
s=$(ls sharded | grep -m1 00001); cp -r sharded all
(cd sharded && mv model.safetensors.index.json .model.safetensors.index.json.sft-aaaaaaaa.old && mv $s .$s.sft-bbbbbbbb.old)
$SFT meta recover sharded/model.safetensors.index.json | sort; diff -r sharded all
# Two of them, and what has further names are left alone.
mv $m $old; cp keep .$m.sft-11111111.old; $SFT meta recover $m 2>&1 | sed 's/11111111/0123abcv/'; echo ${PIPESTATUS[0]}; rm .$m.sft-11111111.old
ln $old other; $SFT meta recover $m; echo $?; rm other
mv $old real; mkdir $old; $SFT meta recover $m; rmdir $old
for name in .$m.sft-0123abc.old .$m.sft-0123abcw.old .$m.20240101.old $m.sft-0123abcv.old; do cp keep $name; $SFT meta recover $m; rm $name; done
mv real $m; cp keep $old; cp keep .gone.sft-22222222.old
$SFT repair --clean .; ls -A | grep -F .old
true
# What has taken the name is no successor: the only copy stays.
cp $m .taken.sft-33333333.old; mkdir taken; $SFT repair --clean .; ls -A | grep -F .old; rmdir taken
# Nothing is written by --dry-run.
$SFT meta recover --dry-run taken; echo $?; ls -A | grep -F .old
# An index may name very many that are not there: 16 are looked for, and the next 16 by another run.
mkdir many; python3 -c 'import json
json.dump({"metadata": {}, "weight_map": {f"t{i}": f"s{i}.safetensors" for i in range(20)}}, open("many/m.safetensors.index.json", "w"))'
for i in $(seq 0 19); do cp $m many/.s$i.safetensors.sft-44444444.old; done
for run in 1 2; do $SFT meta recover many/m.safetensors.index.json >/dev/null; echo $?; ls many/s* | wc -l; done
