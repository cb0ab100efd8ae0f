//! Figures that papers print, and verdicts about derived values beside them.

use serde::Serialize;

/// Figure that a paper prints of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Name by which the paper is cited.
    pub paper: String,
    /// Section or table.
    pub at: String,
    /// The number as it stands there, in the item's unit.
    pub text: String,
}

impl Printed {
    /// Returns the preset for which the paper prints its figures.
    pub fn machine(&self) -> String {
        self.paper.to_lowercase()
    }

    /// Returns the number.
    ///
    /// # Panics
    /// If the text is no number: a broken sheet.
    pub fn value(&self) -> f64 {
        let number = |text: &str| text.parse::<f64>().expect("papers print numbers");
        match self.text.split_once('/') {
            Some((above, below)) => number(above) / number(below),
            None => number(&self.text),
        }
    }

    /// Compares with a value that is rounded to as many digits. A fraction is exact.
    pub fn agrees_with(&self, value: f64) -> bool {
        let printed = self.value();
        let (digits, exponent) = self.text.split_once('e').unwrap_or((&self.text, "0"));
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

/// Relation of a derived value to the printed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The derived value, rounded to as many digits, is the printed one.
    Agrees,
    /// The two differ; the item's note says why.
    Differs,
    /// The two differ, and the printed value is for parameters other than these.
    OtherParameters,
    /// The value is the paper's own, taken over and not derived.
    Reported,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Printed {
        Printed { paper: "Silo".into(), at: "Table IV".into(), text: text.into() }
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
