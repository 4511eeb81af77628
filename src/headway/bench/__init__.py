"""The measurements of `headway bench`: the speed of a training step and of a translation on this machine, beside peers.
The benchmarks of the repository (`benchmarks/`) use its parts."""
