$SFT ls --tree sharded
