use std::fmt;
use std::ops::Range;

/// What a mutant makes of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Becomes {
    /// The expression is true.
    True,
    /// The expression is false.
    False,
    /// The condition, which binds names, is never met: `false && ` before it.
    Never,
    /// The argument is a function, and each of its results is true.
    AlwaysTrue,
}

impl fmt::Display for Becomes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::True => "true",
            Self::False => "false",
            Self::Never => "never",
            Self::AlwaysTrue => "always true",
        })
    }
}

/// One guard of a condition, and what a mutant makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The expression, in bytes of its file.
    pub span: Range<usize>,
    /// What the mutant makes of it.
    pub becomes: Becomes,
    /// The function that contains the guard.
    pub function: String,
}

/// The guards of a file, and how many were left out.
#[derive(Debug, Default)]
pub struct Found {
    /// The guards that a mutant can drop.
    pub guards: Vec<Guard>,
    /// Conditions in const functions: a mutant reads the environment there, and would not compile.
    pub in_const: usize,
    /// Conditions in macros whose arguments are not understood.
    pub in_macros: usize,
    /// The modules that only tests have, as `name` in `mod name;`.
    pub test_modules: Vec<String>,
}
