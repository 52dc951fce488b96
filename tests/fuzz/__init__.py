"""A fuzzer of whole runs: specs from `weft schema`, tables held against each other, runs held against other runs."""
