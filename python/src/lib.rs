//! PyO3 module.
