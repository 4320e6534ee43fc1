# No models: no page.
mkdir empty
catalog empty -o c.html; echo $?; test -e c.html || echo no page
catalog empty . --where name=nothing -o c.html; echo $?; test -e c.html || echo no page
catalog none.safetensors -o c.html; echo $?; catalog . none -o c.html; echo $?; test -e c.html || echo no page
