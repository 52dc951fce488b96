//! From a spec to results on disk: validation, runs, measurements, tables.
