//! Assertions of designs and of the machine that fail, as what they are to a user: guarantees that do not hold. A field that
//! cannot hold its value is one of them ([`Field`](graven_base::memory::Field)).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;

use graven_base::control::panic_text;
use graven_base::host::OutOfMemory;

/// The beginning of a violation of this kind.
const BEGINNING: &str = "an assertion fails: ";

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that may fail an assertion, whose text is returned then; nothing is printed of it.
///
/// # Errors
/// That text.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                before(info);
            }
        }));
    });
    let was_quiet = IS_QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(was_quiet);
    result.map_err(|panic| {
        if panic.is::<OutOfMemory>() {
            // It says nothing about the design.
            resume_unwind(panic);
        }
        format!("{BEGINNING}{}", panic_text(panic.as_ref()))
    })
}

/// Tells whether what was broken is an assertion.
pub fn is_assertion(what: &str) -> bool {
    what.starts_with(BEGINNING)
}

#[cfg(test)]
mod tests {
    use graven_base::host::out_of_memory;

    use super::*;

    #[test]
    fn an_assertion_is_a_text_and_nothing_else_is() {
        assert_eq!(caught(|| 3), Ok(3));
        let failed = caught(|| assert_eq!(1 + 1, 3, "sums")).expect_err("it fails");
        assert!(is_assertion(&failed) && failed.contains("sums"), "{failed}");
        assert!(!is_assertion("word 0x0 is lost"));
        let nested = caught(|| caught(|| panic!("inner")).expect_err("it fails"));
        assert_eq!(nested.as_deref(), Ok("an assertion fails: inner"));
    }

    #[test]
    fn a_host_without_memory_is_no_assertion() {
        let ended = catch_unwind(|| caught(|| out_of_memory(7)));
        let panic = ended.expect_err("it goes on");
        assert_eq!(panic.downcast_ref(), Some(&OutOfMemory { bytes: 7 }));
    }
}
