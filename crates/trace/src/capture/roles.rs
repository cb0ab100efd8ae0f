//! What functions are for that a program calls, and what a transaction is.

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
    /// What it loads and stores, and its instructions, are left out of the trace.
    LeftOut,
    /// Its first entry begins the region of interest.
    From,
    /// When it is left for the first time after that, the region ends.
    Until,
}

/// A robust lock whose owner has died: it is acquired.
const OWNER_DEAD: u32 = 130;

impl Role {
    /// Whether its entry begins a transaction.
    #[must_use]
    pub fn begins(self) -> bool {
        matches!(self, Role::Begin { .. } | Role::Call)
    }

    /// Whether its return ends one that another function has begun.
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Role::Commit | Role::Abort)
    }

    /// Whether what it does itself is synchronisation.
    pub(super) fn synchronises(self) -> bool {
        match self {
            Role::Begin { .. } | Role::Call | Role::Commit | Role::Abort => false,
            Role::LeftOut | Role::From | Role::Until => false,
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
    /// What the program calls it.
    pub name: String,
    /// What it is for.
    pub roles: Vec<Role>,
}

/// What the events of a program mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Functions that were followed, by their numbers.
    pub functions: Vec<Function>,
    /// A thread's critical sections are transactions, from its first lock to the release of its last; those are none that do
    /// not touch persistent memory.
    pub critical_sections: bool,
}

impl Rules {
    /// What a function is for.
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

    /// Whether something is a transaction, beside what markers say.
    #[must_use]
    pub fn have_transactions(&self) -> bool {
        let begins = |function: &Function| function.roles.iter().any(|role| role.begins());
        self.critical_sections || self.functions.iter().any(begins)
    }
}
