# The folder of a dataset is one result, whatever lies in it.
for kind in kv batch empty connector connector-kv; do dataset $kind d/$kind; done
$SFT info d/batch/
$SFT info --json d/empty d/connector
$SFT info -r d | sed 's/  */ /g'
$SFT info --tsv -r -f path,kind,name,dataset.mode,dataset.samples,dataset.columns.x.dtype,bytes d
$SFT info -r -f path --where 'dataset.samples>=8' --where bytes\<400 d
(cd d/kv && $SFT info -f kind,name,path . && $SFT info -f path ../kv ../../d/batch)
# A shard given by name is a model; a job's files and links are the dataset's; another model is itself.
$SFT info -f kind,path d/batch/part-00000-*
mkdir d/batch/_job-1 && cp d/batch/part-00000-* d/batch/_job-1
cp quantised.safetensors d/batch/own.safetensors && cp lora/*.safetensors d/batch/part-of-it.safetensors
$SFT info -r -f kind,path d/batch
$SFT find -r batch d; $SFT find -l -r --where kind=dataset d; $SFT find --compute 0123456789ab d/batch/; echo $?
$SFT info --hash all --export-preview out d/batch | tail -n 1; ls out 2>/dev/null
$SFT info --where dataset.sample=3 d; echo $?
# Other commands still see the shards.
$SFT ls -r d/kv | wc -l; $SFT check d/batch; echo $?
# A manifest that is damaged, or is no file.
echo '{' > d/batch/dataset_manifest.json; $SFT info -r -f path d; echo $?
$SFT info --jsonl d/batch >lines; head -n 1 lines | pyjson 'sorted(j), j["error"]["code"]'
: > d/kv/dataset_manifest.json; $SFT info d/kv; echo $?
rm d/empty/dataset_manifest.json; mkdir d/empty/dataset_manifest.json; $SFT info d/empty; echo $?
