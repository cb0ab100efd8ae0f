//! Parameters: one declaration serves parsing, checking, documentation and the results' record.

use std::any::Any;
use std::fmt::Debug;
use std::ops::RangeInclusive;

use toml::Value;

/// Description of a parameter, for documentation and for the record of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name within its section.
    pub key: &'static str,
    /// Meaning of the parameter.
    pub doc: &'static str,
    /// Unit of the value; empty for choices and switches.
    pub unit: &'static str,
    /// The values that are accepted, in words.
    pub allowed: String,
    /// The default, as it would be written in a file.
    pub default: String,
}

/// Why a section refused a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The section has no such key; these it has.
    UnknownKey(Vec<&'static str>),
    /// The value has the wrong type or is out of range; this is allowed.
    NotAllowed(String),
}

/// A named group of parameters: a `[table]` of the configuration.
pub trait Section: Any + Debug + Send + Sync {
    /// The table's name.
    fn name(&self) -> &'static str;
    /// Subject of the group.
    fn doc(&self) -> &'static str;
    /// Parameters of the group in the order of declaration.
    fn fields(&self) -> Vec<Field>;
    /// The current value of a parameter.
    fn get(&self, key: &str) -> Option<Value>;
    /// Replaces a value, or refuses it and changes nothing.
    ///
    /// # Errors
    /// [`Refusal`] names what would have been accepted.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), Refusal>;
    /// A copy behind a new box.
    fn boxed_clone(&self) -> Box<dyn Section>;
    /// For access to the concrete type.
    fn as_any(&self) -> &dyn Any;
}

/// A type that can be a parameter's value.
pub trait Param: Sized {
    /// Restriction of the values, beyond that of the type.
    type Limits;
    /// Takes a value from a file or an argument; `None` if it is not of this type or out of limits.
    fn accept(value: &Value, limits: &Self::Limits) -> Option<Self>;
    /// The allowed values, in words.
    fn allowed(limits: &Self::Limits) -> String;
    /// The value as it would stand in a file.
    fn to_value(&self) -> Value;
}

fn integer(value: &Value) -> Option<u64> {
    value.as_integer().and_then(|i| u64::try_from(i).ok())
}

macro_rules! integer_param {
    ($($t:ty),*) => {$(
        impl Param for $t {
            type Limits = RangeInclusive<$t>;
            fn accept(value: &Value, limits: &Self::Limits) -> Option<Self> {
                let v = <$t>::try_from(integer(value)?).ok()?;
                limits.contains(&v).then_some(v)
            }
            fn allowed(limits: &Self::Limits) -> String {
                format!("a whole number from {} to {}", limits.start(), limits.end())
            }
            fn to_value(&self) -> Value {
                Value::Integer(i64::try_from(*self).expect("limits keep parameters within i64"))
            }
        }
    )*};
}
integer_param!(u32, u64);

impl Param for f64 {
    type Limits = RangeInclusive<f64>;
    fn accept(value: &Value, limits: &Self::Limits) -> Option<Self> {
        let v = value.as_float().or_else(|| value.as_integer().map(|i| i as f64))?;
        // NaN lies in no range. Adding zero turns -0.0 into 0.0, which results print alike.
        limits.contains(&v).then_some(v + 0.0)
    }
    fn allowed(limits: &Self::Limits) -> String {
        format!("a number from {} to {}", limits.start(), limits.end())
    }
    fn to_value(&self) -> Value {
        Value::Float(*self)
    }
}

impl Param for bool {
    type Limits = ();
    fn accept(value: &Value, _: &()) -> Option<Self> {
        value.as_bool()
    }
    fn allowed(_: &()) -> String {
        "true or false".into()
    }
    fn to_value(&self) -> Value {
        Value::Boolean(*self)
    }
}

/// A size in bytes; may be written as a number of bytes or as text: `"32 KB"`, `"8 MB"`, `"16 GB"`
/// (powers of 1024). There are no fractions: 1.5 GB is `"1536 MB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// `n` KiB.
    pub const fn kb(n: u64) -> Size {
        Size(n << 10)
    }
    /// `n` MiB.
    pub const fn mb(n: u64) -> Size {
        Size(n << 20)
    }
    /// `n` GiB.
    pub const fn gb(n: u64) -> Size {
        Size(n << 30)
    }

    fn parse(text: &str) -> Option<u64> {
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().ok()?;
        let shift = match text[digits..].trim().to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return None,
        };
        number.checked_mul(1 << shift)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB")];
        match units.iter().find(|(s, _)| self.0 >= 1 << s && self.0.is_multiple_of(1 << s)) {
            Some((shift, unit)) => write!(f, "{} {unit}", self.0 >> shift),
            None => write!(f, "{} B", self.0),
        }
    }
}

impl Param for Size {
    type Limits = RangeInclusive<Size>;
    fn accept(value: &Value, limits: &Self::Limits) -> Option<Self> {
        let bytes = match value {
            Value::String(text) => Size::parse(text)?,
            other => integer(other)?,
        };
        limits.contains(&Size(bytes)).then_some(Size(bytes))
    }
    fn allowed(limits: &Self::Limits) -> String {
        format!(
            "a size from {} to {} (a whole number of bytes, or a whole number with a unit like \"32 KB\")",
            limits.start(),
            limits.end()
        )
    }
    fn to_value(&self) -> Value {
        Value::String(self.to_string())
    }
}

/// Declares an enum whose variants are written as words in a configuration.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }

        impl $crate::config::Param for $name {
            type Limits = ();
            fn accept(value: &$crate::config::toml::Value, _: &()) -> Option<Self> {
                match value.as_str()? {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
            fn allowed(_: &()) -> String {
                format!("one of {}", [$(concat!('"', $text, '"')),+].join(", "))
            }
            fn to_value(&self) -> $crate::config::toml::Value {
                $crate::config::toml::Value::String(match self { $(Self::$variant => $text,)+ }.into())
            }
        }
    };
}

/// Declares a [`Section`]: a struct, its defaults, limits, units and documentation, all in one place.
///
/// ```ignore
/// section! {
///     /// What the group is about.
///     pub struct CoreConfig("core") {
///         /// Number of cores.
///         count: u32 = 8, 1..=64, "cores";
///     }
/// }
/// ```
#[macro_export]
macro_rules! section {
    ($(#[doc = $sdoc:literal])* pub struct $name:ident($table:literal) {
        $($(#[doc = $doc:literal])* $key:ident: $ty:ty = $default:expr, $limits:expr, $unit:literal;)*
    }) => {
        $(#[doc = $sdoc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[doc = $doc])* pub $key: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $crate::config::Section for $name {
            fn name(&self) -> &'static str { $table }
            fn doc(&self) -> &'static str { concat!($($sdoc,)*).trim_ascii() }
            fn fields(&self) -> Vec<$crate::config::Field> {
                let defaults = Self::default();
                vec![$($crate::config::Field {
                    key: stringify!($key),
                    doc: concat!($($doc,)*).trim_ascii(),
                    unit: $unit,
                    allowed: <$ty as $crate::config::Param>::allowed(&$limits),
                    default: <$ty as $crate::config::Param>::to_value(&defaults.$key).to_string(),
                },)*]
            }
            fn get(&self, key: &str) -> Option<$crate::config::toml::Value> {
                match key {
                    $(stringify!($key) => Some(<$ty as $crate::config::Param>::to_value(&self.$key)),)*
                    _ => None,
                }
            }
            fn set(&mut self, key: &str, value: &$crate::config::toml::Value) -> Result<(), $crate::config::Refusal> {
                match key {
                    $(stringify!($key) => match <$ty as $crate::config::Param>::accept(value, &$limits) {
                        Some(accepted) => { self.$key = accepted; Ok(()) }
                        None => Err($crate::config::Refusal::NotAllowed(
                            <$ty as $crate::config::Param>::allowed(&$limits))),
                    },)*
                    _ => Err($crate::config::Refusal::UnknownKey(vec![$(stringify!($key)),*])),
                }
            }
            fn boxed_clone(&self) -> Box<dyn $crate::config::Section> { Box::new(self.clone()) }
            fn as_any(&self) -> &dyn std::any::Any { self }
        }
    };
}
