# The other way: .npz and .pt, which are read again.
foreign state_dict model.pt
$SFT convert model.pt -o model.safetensors
$SFT convert model.safetensors -o again.pt
$SFT convert model.safetensors -o again.npz
for f in again.pt again.npz; do $SFT diff model.safetensors $f && echo same; done
python3 -c 'import zipfile; print(zipfile.ZipFile("again.npz").namelist())'
$SFT convert every-dtype.safetensors -o x.npz
echo $?
ls x.npz 2>/dev/null
true
