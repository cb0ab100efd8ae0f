//! What papers print, and whether a value is what they print.

/// A paper with a machine of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// How it is cited.
    pub name: &'static str,
    /// The preset for which it prints its figures.
    pub machine: &'static str,
}

/// Ogleari, Miller, Zhao: HPCA 2018.
pub const FWB: Paper = Paper { name: "FWB", machine: "fwb" };
/// Wei et al.: ISCA 2020.
pub const MORLOG: Paper = Paper { name: "MorLog", machine: "morlog" };
/// Silo: HPCA 2023.
pub const SILO: Paper = Paper { name: "Silo", machine: "silo" };
/// HOOP: ISCA 2020.
pub const HOOP: Paper = Paper { name: "HOOP", machine: "hoop" };
/// LALEA and BLOM.
pub const LALEA: Paper = Paper { name: "LALEA", machine: "lalea" };

/// What a paper prints of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Which paper.
    pub paper: Paper,
    /// The section or table.
    pub at: &'static str,
    /// The number as it stands there, in the item's unit.
    pub text: &'static str,
}

impl Printed {
    /// The number.
    ///
    /// # Panics
    /// If the text is none: a broken registry.
    pub fn value(&self) -> f64 {
        let number = |text: &str| text.parse::<f64>().expect("papers print numbers");
        match self.text.split_once('/') {
            Some((above, below)) => number(above) / number(below),
            None => number(self.text),
        }
    }

    /// Whether a value, rounded to as many digits, is the number. A fraction is exact.
    pub fn agrees_with(&self, value: f64) -> bool {
        let printed = self.value();
        let (digits, exponent) = self.text.split_once('e').unwrap_or((self.text, "0"));
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        let exponent: i32 = exponent.parse().expect("an exponent is a whole number");
        let last_place =
            if self.text.contains('/') { 0.0 } else { power_of_ten(exponent - decimals) };
        (value - printed).abs() <= last_place / 2.0 + printed.abs() * 1e-9
    }
}

fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().expect("this is a number")
}

/// How a derived value relates to what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the printed one, rounded as that is.
    Agrees,
    /// It is not; the item's note says why.
    Differs,
    /// It is not, and the printed value is for parameters other than these.
    OtherParameters,
    /// The value is the paper's own, taken over and not derived.
    Reported,
}

impl Verdict {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "differs",
            Verdict::OtherParameters => "other-parameters",
            Verdict::Reported => "reported",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &'static str) -> Printed {
        Printed { paper: SILO, at: "Table IV", text }
    }

    #[test]
    fn a_value_agrees_if_it_rounds_to_what_is_printed() {
        for (text, close, far) in [
            ("680", 680.0, 681.0),
            ("62", 61.6, 61.08),
            ("0.17", 0.1697, 0.1751),
            ("28.4", 28.362, 28.34),
            ("2.125e-4", 2.1254e-4, 2.1208e-4),
            ("4/101", 8.0 / 202.0, 8.0 / 201.0),
            ("16.0", 16.0375, 16.06),
        ] {
            assert!(printed(text).agrees_with(close), "{text} and {close}");
            assert!(!printed(text).agrees_with(far), "{text} and {far}");
        }
    }
}
