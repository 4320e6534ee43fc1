# What a pipe holds is recognised too.
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4200000000\n' 0 | $SFT info -
echo $?
printf 'abc' | $SFT ls -
echo $?
head -c 300 every-dtype.safetensors | $SFT info --json - | pyjson 'j["results"][0]["error"]["code"]'
: | $SFT info -
