//! Home of the benchmarks; see `src/bin/`.
