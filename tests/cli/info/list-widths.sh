# Thirty mixed models on terminals of five widths, and in a pipe.
here=$(dirname "$BASH_ENV")
export NO_COLOR=1
python3 "$here/info/mixed.py" t
for columns in 60 80 100 120 200; do
    python3 "$here/terminal.py" $columns $SFT info -r t >list || echo "exit $?"
    cat list
    python3 "$here/info/fits.py" $columns t <list
    echo ---
done
$SFT info -r t | tee list
python3 "$here/info/fits.py" 0 t <list
for columns in 1 10 20 40; do # narrow ones are not garbled either
    python3 "$here/terminal.py" $columns $SFT info -r t/vae
done
