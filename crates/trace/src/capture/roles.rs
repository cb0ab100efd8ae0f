//! The roles of functions that a program calls, and the meaning of a transaction.

/// The meaning of a call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The entry begins a transaction.
    Begin {
        /// The call has begun none if it does not return 0.
        returns_zero: bool,
    },
    /// A call of it is a transaction.
    Call,
    /// The return ends one: the function's own accesses are part of the transaction.
    Commit,
    /// The same; what was stored was undone, by stores of the program's.
    Abort,
    /// The return, with 0, acquires the lock to which the first argument points.
    Lock,
    /// The same, but others may acquire it so, too.
    LockShared,
    /// The entry releases the lock.
    Unlock,
    /// Both: its entry releases the lock that its second argument points to, and when it returns it has it again.
    Wait,
    /// The call orders threads: their actions before they enter it, and after they leave it.
    Order,
    /// The same, of what they do before they enter it.
    Release,
    /// The same, of what they do after it has returned 0.
    Acquire,
    /// The loads, stores and instructions are left out of the trace.
    LeftOut,
    /// The first entry begins the region of interest.
    From,
    /// When it is left for the first time after that, the region ends.
    Until,
}

/// A robust lock whose owner has died: it is acquired.
const OWNER_DEAD: u32 = 130;

impl Role {
    /// Tells whether its entry begins a transaction.
    #[must_use]
    pub fn begins(self) -> bool {
        matches!(self, Role::Begin { .. } | Role::Call)
    }

    /// Tells whether its return ends one that another function has begun.
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Role::Commit | Role::Abort)
    }

    /// Tells whether what it does itself is synchronisation.
    pub(super) fn synchronises(self) -> bool {
        match self {
            Role::Begin { .. } | Role::Call | Role::Commit | Role::Abort => false,
            Role::LeftOut | Role::From | Role::Until => false,
            Role::Lock | Role::LockShared | Role::Unlock | Role::Wait => true,
            Role::Order | Role::Release | Role::Acquire => true,
        }
    }

    /// Tells whether a function that returns this has acquired a lock. Of an int, the upper half is anything.
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
            "left-out" => Role::LeftOut,
            "from" => Role::From,
            "until" => Role::Until,
            _ => return None,
        })
    }
}

/// A function that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name in the program.
    pub name: String,
    /// The roles.
    pub roles: Vec<Role>,
}

/// The meaning of a program's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Functions that were followed, by their numbers.
    pub functions: Vec<Function>,
    /// A thread's critical sections are transactions, from its first lock to the release of its last; those are none that do
    /// not touch persistent memory.
    pub critical_sections: bool,
}

impl Rules {
    /// The roles of a function.
    #[must_use]
    pub fn roles(&self, function: u32) -> &[Role] {
        self.functions.get(function as usize).map_or(&[], |function| &function.roles)
    }

    /// The name of a function that has a role.
    #[must_use]
    pub fn name_of(&self, role: Role) -> Option<&str> {
        let has = |function: &&Function| function.roles.contains(&role);
        self.functions.iter().find(has).map(|function| function.name.as_str())
    }

    /// The functions that say what a transaction or the region of interest is, or are left out, and that were not entered. An
    /// abort is none: most programs make none.
    pub(super) fn never_entered(&self, entered: &[bool]) -> impl Iterator<Item = &Function> {
        let is_named = |role: &Role| !role.synchronises() && *role != Role::Abort;
        self.functions.iter().enumerate().filter_map(move |(number, function)| {
            let was_entered = entered.get(number).copied().unwrap_or(false);
            (!was_entered && function.roles.iter().any(is_named)).then_some(function)
        })
    }

    /// Tells whether something is a transaction, beside what markers say.
    #[must_use]
    pub fn have_transactions(&self) -> bool {
        let begins = |function: &Function| function.roles.iter().any(|role| role.begins());
        self.critical_sections || self.functions.iter().any(begins)
    }
}
