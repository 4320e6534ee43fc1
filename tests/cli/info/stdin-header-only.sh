# Nothing past the header is read: what is left in the pipe is all the data.
st f.safetensors "$one" 8
cat f.safetensors | { $SFT info - >/dev/null; wc -c; } | tr -d ' '
mkfifo pipe
(head -c 62 f.safetensors; sleep 30) >pipe 2>/dev/null & writer=$!
timeout 10 $SFT info --json - <pipe | pyjson 'j["results"][0]["complete"], j["results"][0]["file"]["tensors"]'
kill $writer
