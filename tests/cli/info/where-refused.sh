# What makes no sense is wrong usage, and never compared as text.
w() { $SFT info -f name --where "$1" lora; echo "$1: $?"; }
for x in 'name<5' 'name>a' 'base_model>=SDXL' 'tags<x' 'size>1GB' 'hashes.recorded.algo<1' 'path>2kb' \
         'bytes>abc' 'bytes>' 'bytes>5XB' 'bytes>5MBB' 'bytes>1,000' 'bytes>0x10' 'bytes>nan' 'bytes>1e999' \
         'bytes=>5' 'bytes<>5' 'bytes~5' 'rank>4MB' 'rank=four' 'parameters>7GB' 'parameters>7 B B' \
         'date>May' 'date>2024-13' 'date>2024-00-01' 'date>2024-5' 'date=2024-05-31T25:00' \
         'date>2024-05-31T10:00+02:00' 'nsfw=maybe' 'nsfw>true' 'nsfw~t' 'name~' 'metadata.x>last' \
         'kind=lora' 'kind!=LoRA' 'kind=adapterr' 'kind=zzz' 'kind=textual inversion' 'kind=llm' \
         'training.epoc=3' 'training.datasets.0.images>x' 'name.trust>x' 'name.others.value<x' 'model.kind=ckpt' 'model.kind.value=ckpt' 'parts.model.kind=ckpt' 'prediction_type=vpred' 'prediction_type=z' \
         'model.size=big' 'kind~lora' 'nmae=x' 'training.epoch' 'nosuch' '' '=' 'name' 'bytse>5MB' '!name=x' \
         $'na\x1b[2Jme=x' $'kind=\x1b[2J' "kind=$(printf %0600d 0)"; do
    w "$x" 2>&1 | tr -d '\033' | cut -c 1-400
done
# A likely misspelling of what may be a value that nobody knew is only noted.
for x in architecture=sxdl architecture=pony architecture=SD15 'architecture!=flux' architecture=own_model \
         variant=high_noise variant=i2v variant=14b+i2v quantization=nf4 family=lama-like kind=Adapter \
         prediction_type=V; do
    w "$x" 2>&1
done
$SFT find --where kind=lora .; echo $?
