# Help is as wide as the terminal, if that is narrower than a page; a pipe gets the page.
wide() { awk -v most="$1" 'length($0) > most { print FILENAME ": " length($0) }' "$2"; }
for columns in 60 80 200; do
    for page in "help" "help -a" "help convert" "help info" "help dataset" "help meta"; do
        python3 "$(dirname "$BASH_ENV")/terminal.py" $columns $SFT $page >page
        sed -i 's/\x1b\[[0-9;]*m//g' page
        [ $columns = 60 ] && limit=60 || limit=79
        # Examples, usage and an option with its choices stay on one line.
        grep -v -e '^  safetensors ' -e '^ *-[^ ]*[-a-z, ]* [^ ]*|[^ ]*$' page >words; wide $limit words
        $SFT $page >pipe
        cmp -s page pipe; echo "$columns $page: $?"
    done
done
