# URLs that are none: the scheme, the form; a file of such a name is a file.
for url in ftp://host/file hf://gpt2 hf:// s3:// https:// http://a:b/c https://ho%20st/x \
    file:///etc/passwd HTTPX://host/x 'https://host/a b' hf://a/b@ hf://a/b/../c; do
    $SFT info "$url"
    echo "$? $url"
done 2>&1
mkdir -p ftp:/host
st ftp:/host/file "$one" 8
$SFT ls ftp://host/file
