# Every row of facts_names.c is read back as the id it is made from.
python3 "$(dirname "$BASH_ENV")/info/save_as_names.py" "$SFT"
