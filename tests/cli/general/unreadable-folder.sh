# A folder that cannot be read (its path is too long) is told of, and the rest goes on.
mkdir t && st t/open.safetensors "$one" 8
name=$(printf 'n%.0s' {1..250})
(cd t && for i in {1..20}; do mkdir $name && cd -P $name || exit; done)
$SFT ls -r t 2>err | head -n 1
echo ${PIPESTATUS[0]}
cut -c 1-40 err && grep -o 'n: .*' err
$SFT check -r t 2>/dev/null
