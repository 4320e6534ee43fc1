# Commands under the names that they have elsewhere.
for pair in show:info stat:info list:ls verify:check validate:check metadata:meta search:find; do
    $SFT help ${pair%:*} | cmp - <($SFT help ${pair#*:}) && echo $pair
done
$SFT list quantised.safetensors | cmp - <($SFT ls quantised.safetensors) && echo same
for word in dump extract edit rm chekc zzzzzz; do $SFT $word quantised.safetensors; echo $?; done
