"""Translating on many machines: shards of files, each translated by one worker. Ray hands them out; what is done,
the files alone tell."""
