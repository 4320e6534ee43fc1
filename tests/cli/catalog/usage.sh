# How it is called wrongly.
try() { $SFT catalog "$@" 2>&1 | head -n 1; }
try; try lora; try -o c.html; try - -o c.html; try lora --model quantised.safetensors -o c.html
try lora --deep -o c.html; try lora --embed=x -o c.html; try lora --embed=70000 -o c.html
try lora --where nonsense -o c.html; try lora --hash md -o c.html; try lora -o .; try lora -o none/c.html
try --model quantised.safetensors --where name=x -o c.html
ls *.html 2>/dev/null
$SFT catalog lora -o c.html --embed 4; echo $?
cp lora/neon-city.safetensors m.safetensors
$SFT catalog lora -o m.safetensors --force; echo $?; cmp m.safetensors lora/neon-city.safetensors
: >e.html; $SFT catalog lora -o e.html --force | sed -E 's/[0-9]+ KB/SIZE/'; head -c 16 e.html
