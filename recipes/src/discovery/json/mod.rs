//! The data of an instance's node: the JSON of Curator's `JsonInstanceSerializer`, byte for byte.
//!
//! One object with the fields `name`, `id`, `address`, `port`, `sslPort`, `payload`, `registrationTimeUTC`,
//! `serviceType` and `uriSpec` in this order, without blanks. A value that is not there is `null`. The last
//! field `enabled` is in the data only if Curator writes with `compatibleSerializationMode` off, or if we
//! write an instance that is not enabled. Sources: Curator 5.4 itself, whose output the tests have recorded.

mod jackson;
mod payload;

use lockkeeper_core::{ConfigError, DecodeFailure, Error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::instance::{Instance, InstanceState, ServiceType};
use super::uri_spec::UriSpec;

impl<P: Serialize> Instance<P> {
    /// The data of the node, byte for byte as Curator's `JsonInstanceSerializer` writes it. For a
    /// [`Permanent`](ServiceType::Permanent) instance, write it by
    /// [`Znodes::create`](lockkeeper_core::Znodes::create) at `<path>/<name>/<id>`.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the payload cannot be JSON, such as a map whose keys are no text.
    pub fn to_json(&self) -> Result<Vec<u8>, Error> {
        write(self, false)
    }
}

impl<P: DeserializeOwned> Instance<P> {
    /// Reads the data of a node, as Curator or [`to_json`](Self::to_json) wrote it. Unknown fields are
    /// ignored.
    ///
    /// # Errors
    ///
    /// The flaw of the data: no JSON, no name or id, a port out of range, a payload that is no `P`.
    pub fn from_json(data: &[u8]) -> Result<Self, DecodeFailure> {
        read(data)
    }
}

/// The fields in their order, as they are written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    name: &'a str,
    id: &'a str,
    address: Option<&'a str>,
    port: Option<u16>,
    ssl_port: Option<u16>,
    payload: Option<&'a RawValue>,
    #[serde(rename = "registrationTimeUTC")]
    registered_at: i64,
    service_type: ServiceType,
    uri_spec: Option<&'a UriSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
}

/// The fields as they are read. Those that Curator can do without may be missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadFields<'a> {
    name: String,
    id: String,
    #[serde(default)]
    address: Option<String>,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    ssl_port: Option<u16>,
    #[serde(default, borrow)]
    payload: Option<&'a RawValue>,
    #[serde(default, rename = "registrationTimeUTC")]
    registered_at: i64,
    #[serde(default)]
    service_type: Option<ServiceType>,
    #[serde(default)]
    uri_spec: Option<UriSpec>,
    /// Curator reads a missing field as true, and `null` as false.
    #[serde(default = "enabled")]
    enabled: Option<bool>,
}

fn enabled() -> Option<bool> {
    Some(true)
}

/// Writes `enabled` of an enabled instance only if asked for.
pub(super) fn write<P: Serialize>(instance: &Instance<P>, with_enabled: bool) -> Result<Vec<u8>, Error> {
    let payload = match &instance.payload {
        Some(payload) => payload::write(payload, instance.payload_class.as_deref()).map_err(unwritable)?,
        None => None,
    };
    let written = Written {
        name: &instance.name,
        id: &instance.id,
        address: instance.address.as_deref(),
        port: instance.port,
        ssl_port: instance.ssl_port,
        payload: payload.as_deref(),
        registered_at: instance.registered_at,
        service_type: instance.service_type,
        uri_spec: instance.uri_spec.as_ref(),
        enabled: (with_enabled || !instance.is_enabled()).then_some(instance.is_enabled()),
    };
    jackson::to_vec(&written).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> Error {
    let advice = "give the instance a payload that serde_json can write";
    ConfigError::Setting { name: "the payload", value: error.to_string(), advice }.into()
}

pub(super) fn read<P: DeserializeOwned>(data: &[u8]) -> Result<Instance<P>, DecodeFailure> {
    let found: ReadFields<'_> = serde_json::from_slice(data)?;
    let (payload, payload_class) = match found.payload {
        Some(raw) => payload::read(raw).map_err(|error| format!("the payload: {error}"))?,
        None => (None, None),
    };
    Ok(Instance {
        name: found.name,
        id: found.id,
        address: found.address,
        port: found.port,
        ssl_port: found.ssl_port,
        payload,
        payload_class,
        registered_at: found.registered_at,
        service_type: found.service_type.unwrap_or_default(),
        uri_spec: found.uri_spec,
        state: match found.enabled {
            Some(true) => InstanceState::Enabled,
            _ => InstanceState::Draining,
        },
    })
}

#[cfg(test)]
mod tests;
