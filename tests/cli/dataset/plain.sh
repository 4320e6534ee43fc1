# info, verify, ls and gc of our datasets and the connector's.
for kind in kv batch empty connector connector-kv; do dataset $kind $kind; done
$SFT dataset info kv batch empty connector; echo $?
$SFT dataset verify --deep kv batch empty connector-kv; echo $?
$SFT dataset ls batch; echo $?
$SFT dataset ls --match 'bob*' kv connector-kv; echo $?
$SFT dataset ls --match 'none' kv; echo $?
$SFT dataset gc kv connector; echo $?
