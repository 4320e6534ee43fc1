# Pictures in the page: of headers always, of files with --embed, up to a size.
mkdir m; for n in a b c; do cp quantised.safetensors m/$n.safetensors; done
png m/a.png 4 4; png m/b.png 4 4 70000; png small.png 7 7; png large.png 7 7 70000
$SFT meta set m/c.safetensors --thumbnail small.png >/dev/null
try() { catalog m "$@" -o c.html --force; page c.html '"\n".join(map(str, rows["preview"])) + "\n" + str([one[:40] + str(len(one)) for one in embedded])'; }
try; try --embed; try --embed=80; try --embed=0
for i in $(seq 40); do cp quantised.safetensors m/x$i.safetensors; png m/x$i.png 8 $i; done
catalog m --embed -o d.html
page d.html '[one["href"] for one in rows["preview"]], len(embedded)'
