# A reader that goes away is no error, and nothing is said.
python3 -c 'print("{" + ",".join("\"layer.%d.weight\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}" % i for i in range(20000)) + "}", end="")' >h
st f.safetensors "$(cat h)"
for what in ls 'ls --json' 'ls --tsv' 'ls --tree'; do $SFT $what f.safetensors | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}; done
head -c 50000000 /dev/zero >z && st g.safetensors '{"w":{"dtype":"F32","shape":[10000000],"data_offsets":[0,40000000]}}' 40000000
for as in raw text json npy; do $SFT cat --as $as g.safetensors w | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}; done
