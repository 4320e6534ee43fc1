m=every-dtype.safetensors
mkdir full; echo x >full/x; : >file
$SFT split $m -o full; echo $?; ls full
$SFT split $m -o file; echo $?
$SFT split $m -o nosuch/out; echo $?
$SFT split $m; echo $?
for words in "--count 0" "--count 23" "--count x" "--count 2 --max-size 1GB" "--max-size 0" "--max-size 5XB" "--max-size 99999999999TB"; do
    $SFT split $m -o out $words; echo $?
done
ls out 2>/dev/null
mkdir here; $SFT split $m -o here --count 2; ls here | wc -l
chmod a-w .; [ -w . ] || $SFT split $m -o out 2>/dev/null; chmod u+w .; ls -d out 2>/dev/null
true
for name in '' a/b ../b nul a:b 'what?' 'a*' 'con '; do $SFT split every-dtype.safetensors -o odd --count 2 --name "$name" 2>&1; echo $?; done; ls -d odd 2>/dev/null
true
