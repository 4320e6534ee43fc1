# --sort, --reverse, --group-by: in every form that people read and in tables.
here=$(dirname "$BASH_ENV")
python3 "$here/info/mixed.py" t
for key in path name date size base rank; do echo "== $key"; $SFT info -r --sort $key -f name,date,bytes,base_model,rank t/loras; done
echo "== reverse"
$SFT info -r --reverse -f name t/loras
$SFT info -r --sort rank --reverse --tsv -f name,rank t/loras
for group in base kind folder; do echo "== by $group"; $SFT info -r --group-by $group --sort size t; done
echo "== labels"
$SFT info -r --long --sort date t/loras/sdxl t/loras/old
$SFT info -r --group-by base --long t/loras/sdxl
echo "== one model, none"
$SFT info --sort name t/vae/ae.safetensors
mkdir empty
$SFT info --group-by folder empty
$SFT info -r --sort name --where architecture=mochi t
echo "== refused"
$SFT info --sort size --json t; echo $?
$SFT info --group-by kind --jsonl t; echo $?
$SFT info --group-by kind --tsv t; echo $?
$SFT info --group-by kind -f name t; echo $?
$SFT info --sort weight t; echo $?
