"""Translating on many machines: each worker translates shards of files, which Ray hands out. The output files alone say
which shards are done."""
