# An export is never a source: written again and again over a header that changes, the label is that
# of the header alone; what others write into it counts.
lib=$(dirname "$BASH_ENV")/info/save_as_loop.py
python3 "$lib" loop
python3 "$lib" others
python3 "$lib" forged
