# What is not one model has no page, and nothing is left of it.
mkdir none several
st several/a.safetensors "$one" 8
st several/b.safetensors "$one" 8
st cut.safetensors "$one" 7
for path in none several cut.safetensors nowhere.safetensors; do
    $SFT catalog --model $path -o page.html
    echo "exit $?"
    ls page.html 2>/dev/null
done
$SFT catalog --deep several -o page.html
echo "exit $?"
st a.safetensors "$one" 8
$SFT catalog --model a.safetensors --deep --threads many -o page.html
echo "exit $?"
echo kept >page.html
$SFT catalog --model a.safetensors -o page.html
echo "exit $?"
cat page.html
