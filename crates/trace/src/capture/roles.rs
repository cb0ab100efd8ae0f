//! What functions are for that a program calls.

/// What a call of a function means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its entry begins a transaction.
    Begin {
        /// It has begun none if it does not return 0.
        returns_zero: bool,
    },
    /// A call of it is a transaction.
    Call,
    /// Its return ends one: what it does itself is part of the transaction.
    Commit,
    /// The same; what was stored was undone, by stores of the program's.
    Abort,
    /// Its return, with 0, acquires the lock that its first argument points to.
    Lock,
    /// The same, but others may acquire it so, too.
    LockShared,
    /// Its entry releases it.
    Unlock,
    /// Both: its entry releases the lock that its second argument points to, and when it returns it has it again.
    Wait,
    /// It orders threads: what they do before they enter it, and after they leave it.
    Order,
    /// The same, of what they do before they enter it.
    Release,
    /// The same, of what they do after it has returned 0.
    Acquire,
}

/// A robust lock whose owner has died: it is acquired.
const OWNER_DEAD: u32 = 130;

impl Role {
    /// Whether its entry begins a transaction.
    #[must_use]
    pub fn begins(self) -> bool {
        matches!(self, Role::Begin { .. } | Role::Call)
    }

    /// Whether what it does itself is synchronisation.
    pub(super) fn synchronises(self) -> bool {
        match self {
            Role::Begin { .. } | Role::Call | Role::Commit | Role::Abort => false,
            Role::Lock | Role::LockShared | Role::Unlock | Role::Wait => true,
            Role::Order | Role::Release | Role::Acquire => true,
        }
    }

    /// Whether a function that returns this has acquired a lock. Of an int, the upper half is anything.
    pub(super) fn has_locked(result: u64) -> bool {
        matches!(result as u32, 0 | OWNER_DEAD)
    }

    /// By its name.
    #[must_use]
    pub fn find(name: &str) -> Option<Role> {
        Some(match name {
            "begin" => Role::Begin { returns_zero: false },
            "begin-returns-zero" => Role::Begin { returns_zero: true },
            "call" => Role::Call,
            "commit" => Role::Commit,
            "abort" => Role::Abort,
            "lock" => Role::Lock,
            "lock-shared" => Role::LockShared,
            "unlock" => Role::Unlock,
            "wait" => Role::Wait,
            "order" => Role::Order,
            "release" => Role::Release,
            "acquire" => Role::Acquire,
            _ => return None,
        })
    }
}
