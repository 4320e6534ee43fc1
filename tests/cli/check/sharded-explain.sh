$SFT check --explain sharded
