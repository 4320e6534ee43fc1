# What has no counterpart, too much output, elements of unknown type: an error, nothing written.
foreign wide wide.pt; foreign expanded huge.pt; foreign npz half.npz
for f in wide.pt huge.pt half.npz; do $SFT convert $f -o x.safetensors; echo $?; done
$SFT convert huge.pt -o x.safetensors --max-output 1MB
echo $?
ls x.safetensors 2>/dev/null
$SFT convert wide.pt -o some.safetensors --skip
$SFT ls --tsv some.safetensors | cut -f 2-4
$SFT convert half.npz -o half.safetensors --as 'half=BF16'
$SFT cat half.safetensors half
$SFT convert half.npz -o x.safetensors --as half
echo $?
$SFT convert half.npz -o x.safetensors --as half=F31
echo $?
$SFT convert half.npz -o x.safetensors --as half=F32
echo $?
$SFT convert half.npz -o x.safetensors --max-output lots
echo $?
head -c 300 wide.pt >cut.pt
$SFT convert cut.pt -o x.safetensors
echo $?
ls x.safetensors 2>/dev/null
true
