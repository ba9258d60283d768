use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::instance::{Instance, ServiceType};
use super::uri_spec::UriSpec;

/// A payload with fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Zone {
    zone: String,
    #[serde(default)]
    weight: Option<f64>,
}

/// The data of an instance's node.
pub(crate) fn instances(data: &[u8]) {
    round_trip::<Zone>(data);
    round_trip::<String>(data);
    round_trip::<Vec<i64>>(data);
    round_trip::<f64>(data);
    if let Ok(instance) = Instance::<Value>::from_json(data) {
        // A payload of no type that has a field of this name has a class when it is read again.
        if instance.payload().is_none_or(|payload| payload.get("@class").is_none()) {
            round_trip::<Value>(data);
        }
    }
}

fn round_trip<P>(data: &[u8])
where
    P: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let Ok(instance) = Instance::<P>::from_json(data) else { return };
    let _ = instance.uri();
    let written = instance.to_json();
    let again = written.as_ref().ok().and_then(|written| Instance::<P>::from_json(written).ok());
    assert_eq!(again.as_ref(), Some(&instance));
    assert_eq!(again.and_then(|again| again.to_json().ok()), written.ok());
}

/// The text of a URI spec.
pub(crate) fn uri_specs(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(spec) = text.parse::<UriSpec>() else { return };
    assert_eq!(spec.to_string(), text);
    let instance = Instance::new("web", "10.0.0.7", 8080).with_id("i7").with_registration_time(-5);
    let instance = instance.with_service_type(ServiceType::Static).with_uri_spec(spec);
    assert_eq!(instance.uri(), Some(filled_in(text)));
}

/// The text with the values of that instance. Each brace is the begin or the end of a name.
fn filled_in(text: &str) -> String {
    let mut pieces = text.split('{');
    let mut filled_in = pieces.next().unwrap_or_default().to_owned();
    for (name, behind) in pieces.filter_map(|piece| piece.split_once('}')) {
        filled_in.push_str(match name {
            "scheme" => "http",
            "name" => "web",
            "id" => "i7",
            "address" => "10.0.0.7",
            "port" => "8080",
            "registration-time-utc" => "-5",
            "service-type" => "STATIC",
            "[" => "{",
            "]" => "}",
            _ => "",
        });
        filled_in.push_str(behind);
    }
    filled_in
}
