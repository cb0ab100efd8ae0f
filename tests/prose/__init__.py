"""Linter of prose: Markdown, docstrings, help texts, and doc comments in Rust."""
