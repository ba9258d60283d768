//! The payload of an instance, and the Java class in it.
//!
//! Jackson marks a payload with its class, so that Java knows what to make of it. An object has the class as
//! its first field `@class`. A list, or a number that is no `Integer` or `Double`, is in an array of two
//! behind its class: `["java.util.ArrayList",[1,2]]`. Texts, numbers and truth values are bare.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::jackson;

const CLASS: &str = "@class";

/// `None` for a payload that is `null`.
pub(super) fn write<P: Serialize>(
    payload: &P,
    class: Option<&str>,
) -> serde_json::Result<Option<Box<RawValue>>> {
    let text = jackson::to_vec(payload)?;
    // serde_json writes UTF-8.
    let text = String::from_utf8(text).map_err(Error::custom)?;
    let text = match (class, text.strip_prefix('{')) {
        _ if text == "null" => return Ok(None),
        (None, _) => text,
        (Some(class), Some("}")) => format!("{{\"{CLASS}\":{}}}", quoted(class)?),
        (Some(class), Some(fields)) => format!("{{\"{CLASS}\":{},{fields}", quoted(class)?),
        (Some(class), None) => format!("[{},{text}]", quoted(class)?),
    };
    RawValue::from_string(text).map(Some)
}

fn quoted(text: &str) -> serde_json::Result<String> {
    String::from_utf8(jackson::to_vec(text)?).map_err(Error::custom)
}

/// The payload and its class.
pub(super) fn read<P: DeserializeOwned>(raw: &RawValue) -> serde_json::Result<(Option<P>, Option<String>)> {
    let text = raw.get();
    if text.starts_with('{') && text.contains(CLASS) {
        let mut fields: Fields<'_> = serde_json::from_str(text)?;
        if let Some(class) = fields.take_class() {
            return Ok((Some(serde_json::from_str(&fields.text()?)?), Some(class)));
        }
    }
    let whole = serde_json::from_str(text);
    match whole {
        Err(error) if text.starts_with('[') => match serde_json::from_str::<(String, &RawValue)>(text) {
            Ok((class, value)) => Ok((Some(serde_json::from_str(value.get())?), Some(class))),
            Err(_) => Err(error),
        },
        whole => Ok((Some(whole?), None)),
    }
}

/// The fields of an object in their order, as they were written.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl Fields<'_> {
    /// Removes the class, if it is a text.
    fn take_class(&mut self) -> Option<String> {
        let at = self.0.iter().position(|(name, _)| name == CLASS)?;
        let class = serde_json::from_str(self.0.get(at)?.1.get()).ok()?;
        self.0.remove(at);
        Some(class)
    }

    fn text(&self) -> serde_json::Result<String> {
        let mut text = String::from("{");
        for (name, value) in &self.0 {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&quoted(name)?);
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        Ok(text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
