$SFT hash -r . >sums
$SFT hash --algo all -r . >>sums
printf '# a remark\n\n' >>sums
sha256sum *.safetensors | sed 's/  / */' >>sums
sha256sum --tag quantised.safetensors >>sums
$SFT hash -c sums | sed 's/: [a-z0-9_]* OK$/: OK/' | sort | uniq -c
printf '%s\n' '3d3ee9c5  none' >bare
$SFT hash -c bare
echo $?
$SFT hash --algo crc32 -c bare
