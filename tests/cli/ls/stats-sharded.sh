# The same over shards as over one file, whatever the number of threads.
$SFT merge sharded -o one.safetensors >/dev/null
for threads in 1 2 7; do
    $SFT ls --stats --tsv --sort name --threads $threads sharded | cut -f 2-5,8- >shards
    $SFT ls --stats --tsv --sort name --threads $threads one.safetensors | cut -f 2-5,8- >one
    cmp shards one && sha256sum <one | cut -c 1-8
done
$SFT ls --stats --json sharded | pyjson 'j["results"][0]["stats"]'
$SFT ls --stats --json one.safetensors | pyjson 'j["results"][0]["stats"]'
