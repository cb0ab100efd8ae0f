"""Host instructions of the benchmarks in `benches/counts`, compared with a table."""
