python3 -c 'import zipfile
with zipfile.ZipFile("f.safetensors", "w") as z:
    z.writestr("archive/data.pkl", b"\x80\x02}q\x00."); z.writestr("archive/version", "3\n")'
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
