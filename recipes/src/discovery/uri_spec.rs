use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use lockkeeper_core::ConfigError;
use serde::{Deserialize, Serialize};

/// How the URI of an instance is built: a text with names in braces, such as
/// `{scheme}://{address}:{port}/api`.
///
/// The names are `scheme`, `name`, `id`, `address`, `port`, `ssl-port`, `registration-time-utc` and
/// `service-type`. Any other name, and a value that the instance does not have, is left out. `{[}` and `{]}`
/// are the braces themselves. The scheme is `https` for an instance with a TLS port, and otherwise `http`.
///
/// # Examples
///
/// ```
/// use lockkeeper::discovery::{Instance, UriSpec};
///
/// let uri: UriSpec = "{scheme}://{address}:{port}/api".parse()?;
/// let instance = Instance::new("web", "10.0.0.7", 8080).with_uri_spec(uri);
/// assert_eq!(instance.uri().as_deref(), Some("http://10.0.0.7:8080/api"));
/// # Ok::<_, lockkeeper::error::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UriSpec {
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    value: String,
    variable: bool,
}

impl UriSpec {
    /// The text with the values of the names. A name without a value is left out.
    pub(super) fn build(&self, value: impl Fn(&str) -> Option<String>) -> String {
        let text = |part: &Part| match (part.variable, part.value.as_str()) {
            (false, text) => text.to_owned(),
            (true, "[") => "{".to_owned(),
            (true, "]") => "}".to_owned(),
            (true, name) => value(name).unwrap_or_default(),
        };
        self.parts.iter().map(text).collect()
    }
}

impl FromStr for UriSpec {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let invalid = |advice| ConfigError::Setting { name: "the URI spec", value: text.to_owned(), advice };
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (value, variable, behind) = match rest.strip_prefix('{') {
                Some(name) => {
                    let (name, behind) = name
                        .split_once('}')
                        .ok_or_else(|| invalid("close each brace, or write {[} for one"))?;
                    (name, true, behind)
                }
                None => {
                    let (text, behind) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                    (text, false, behind)
                }
            };
            if (variable && value.contains('{')) || (!variable && value.contains('}')) {
                return Err(invalid("open and close each brace; write {[} or {]} for a brace itself"));
            }
            parts.push(Part { value: value.to_owned(), variable });
            rest = behind;
        }
        Ok(Self { parts })
    }
}

impl Display for UriSpec {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for Part { value, variable } in &self.parts {
            match variable {
                true => write!(formatter, "{{{value}}}")?,
                false => formatter.write_str(value)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Instance;

    #[test]
    fn a_uri_has_the_values_of_the_instance() {
        let instance = Instance::new("web", "h", 80).with_id("i").with_registration_time(5);
        for (text, uri) in [
            ("{scheme}://{address}:{port}/x", "http://h:80/x"),
            ("{[}{id}{]}/{name}", "{i}/web"),
            ("{ssl-port}{foo}{registration-time-utc}-{service-type}", "5-DYNAMIC"),
            ("plain", "plain"),
            ("", ""),
        ] {
            let spec: UriSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            assert_eq!(instance.clone().with_uri_spec(spec).uri().as_deref(), Some(uri), "{text}");
        }
        let secure = instance.with_ssl_port(443).with_uri_spec("{scheme}:{ssl-port}".parse().unwrap());
        assert_eq!(secure.uri().as_deref(), Some("https:443"));
    }

    #[test]
    fn braces_that_do_not_match_are_an_error() {
        for text in ["{", "a{b", "}", "a}b", "{a{b}", "{}}"] {
            assert!(text.parse::<UriSpec>().is_err(), "{text}");
        }
    }
}
