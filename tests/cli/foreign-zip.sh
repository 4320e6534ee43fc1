python3 -c 'import zipfile
with zipfile.ZipFile("f.safetensors", "w") as z: z.writestr("hello.txt", "hello" * 20)'
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
