//! Configuration by `SECTION.KEY` as reports and states write it: one object, in the order given.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Values by key.
#[derive(Clone, Debug, Default)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Of a key that is given more than once, the last value counts.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Settings {
        let mut settings = Settings::default();
        for (key, value) in pairs {
            match settings.0.iter_mut().find(|pair| pair.0 == key) {
                Some(pair) => pair.1 = value,
                None => settings.0.push((key, value)),
            }
        }
        settings
    }

    /// Pairs of key and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// The order means nothing.
impl PartialEq for Settings {
    fn eq(&self, other: &Settings) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|pair| other.0.contains(pair))
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Settings, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Settings;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("values by SECTION.KEY")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Settings::new(pairs))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_their_order_and_are_equal_in_any() {
        let read = |text| serde_json::from_str::<Settings>(text);
        let text = r#"{"pm.write_ns":"5","core.count":"2"}"#;
        let settings = read(text).expect("an object of texts");
        assert_eq!(serde_json::to_string(&settings).ok().as_deref(), Some(text));
        let turned = read(r#"{"core.count":"2","pm.write_ns":"9","pm.write_ns":"5"}"#);
        assert_eq!(turned.expect("the last counts"), settings);
        assert_ne!(read("{}").expect("an object"), settings);
        assert!(read(r#"{"core.count":2}"#).is_err() && read("[]").is_err());
    }
}
