# convert, select and repair of many models into a folder, or in place.
mkdir -p tree/sub; cp every-dtype.safetensors tree/a.safetensors; cp quantised.safetensors tree/sub/b.safetensors; cp -r sharded tree/set
$SFT convert -r tree --dtype BF16 -o half/; echo $?; find half -type f | sort
$SFT diff -q tree/set half/set >/dev/null 2>&1; $SFT check -r half; echo $?
$SFT convert -r half --dtype BF16 -o again/; echo $?; find again
$SFT convert tree/a.safetensors tree/sub/b.safetensors --dtype F16 -o two --json | grep -o '"output":"[^"]*"'
$SFT convert tree/a.safetensors --dtype F16 -o into/; ls into
$SFT convert -r tree --dtype F16 -o one.safetensors; echo $?
$SFT convert -r tree --dtype F16; echo $?
$SFT select -r tree --drop '*norm*' -o lean/; echo $?; find lean -type f | sort
$SFT select tree/a.safetensors tree/sub/b.safetensors --drop '*norm*' --in-place; echo $?
# A file without a fault is not written; one that cannot be repaired does not stop the rest.
mkdir bad; cp every-dtype.safetensors bad/fine.safetensors
(cat every-dtype.safetensors; printf junk) > bad/tail.safetensors; head -c 100 every-dtype.safetensors > bad/cut.safetensors
$SFT repair -r bad -o fixed/ | sed 's/[0-9]* bytes/N bytes/'; echo ${PIPESTATUS[0]}; ls fixed
$SFT repair bad/fine.safetensors -o fixed/copy.safetensors; $SFT repair bad/fine.safetensors -o fixed/copy.safetensors --copy; ls fixed
$SFT repair bad/fine.safetensors bad/tail.safetensors --in-place; echo $?
$SFT repair -r bad -o fixed/ --json | grep -c '"ok":true'
