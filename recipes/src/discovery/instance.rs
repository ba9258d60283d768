use std::fmt::{self, Display, Formatter};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use super::uri_spec::UriSpec;

/// An instance of a service: its address, and what its clients have to know of it.
///
/// `P` is the payload, of any type that serde reads and writes.
///
/// # Examples
///
/// ```
/// use lockkeeper::discovery::Instance;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Zone {
///     zone: String,
/// }
///
/// let instance = Instance::new("web", "10.0.0.7", 8080).with_payload(Zone { zone: "north".to_owned() });
/// assert_eq!(instance.payload().map(|payload| payload.zone.as_str()), Some("north"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance<P = NoPayload> {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) address: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) ssl_port: Option<u16>,
    pub(super) payload: Option<P>,
    pub(super) payload_class: Option<String>,
    /// In milliseconds since 1970.
    pub(super) registered_at: i64,
    pub(super) service_type: ServiceType,
    pub(super) uri_spec: Option<UriSpec>,
    pub(super) state: InstanceState,
}

/// Whether clients should choose an instance.
///
/// In the JSON it is the field `enabled`. Curator's clients choose no instance that is not enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstanceState {
    /// The instance takes calls.
    #[default]
    Enabled,
    /// The instance finishes the calls that it has, and should get no others.
    Draining,
}

/// The kind of node that an instance has: Curator's `ServiceType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ServiceType {
    /// Ephemeral: it ends with the process. The only kind that
    /// [`Discovery::register`](crate::Discovery::register) makes.
    #[default]
    Dynamic,
    /// Ephemeral, with a number behind the id in the name of the node.
    DynamicSequential,
    /// Persistent. Curator deletes it when the process unregisters.
    Static,
    /// Persistent. It describes a service that does not register itself.
    Permanent,
}

/// No payload. Reads any payload, and drops it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NoPayload;

impl<'de> Deserialize<'de> for NoPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl ServiceType {
    /// Whether the node of such an instance is ephemeral.
    pub(super) fn is_ephemeral(self) -> bool {
        matches!(self, Self::Dynamic | Self::DynamicSequential)
    }
}

impl Instance {
    /// An enabled instance of the service of this name, with a random id and without a payload. Nothing is
    /// registered by this.
    #[must_use]
    pub fn new(name: impl Into<String>, address: impl Into<String>, port: impl Into<Option<u16>>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            name: name.into(),
            id: Uuid::new_v4().to_string(),
            address: Some(address.into()),
            port: port.into(),
            ssl_port: None,
            payload: None,
            payload_class: None,
            registered_at: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
            service_type: ServiceType::Dynamic,
            uri_spec: None,
            state: InstanceState::Enabled,
        }
    }
}

impl<P> Instance<P> {
    /// With this id, in place of a random one.
    ///
    /// Each instance of a service needs an id of its own. A process that is killed and started again with
    /// the same id registers when the session of its predecessor has ended; with a random id it registers
    /// at once.
    #[must_use]
    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: id.into(), ..self }
    }

    /// With a port for TLS.
    #[must_use]
    pub fn with_ssl_port(self, port: u16) -> Self {
        Self { ssl_port: Some(port), ..self }
    }

    /// With this payload.
    #[must_use]
    pub fn with_payload<Q>(self, payload: Q) -> Instance<Q> {
        let Self { name, id, address, port, ssl_port, payload_class, registered_at, .. } = self;
        let Self { service_type, uri_spec, state, .. } = self;
        let payload = Some(payload);
        Instance {
            name,
            id,
            address,
            port,
            ssl_port,
            payload,
            payload_class,
            registered_at,
            service_type,
            uri_spec,
            state,
        }
    }

    /// With the name of the Java class that Curator's clients read the payload into, such as
    /// `com.example.Zone`. It is the field `@class` of the payload. Nothing here depends on it; without it a
    /// Java client that expects a class of its own cannot read the instance.
    #[must_use]
    pub fn with_payload_class(self, class: impl Into<String>) -> Self {
        Self { payload_class: Some(class.into()), ..self }
    }

    /// With this text, from which [`uri`](Self::uri) is built.
    #[must_use]
    pub fn with_uri_spec(self, uri_spec: UriSpec) -> Self {
        Self { uri_spec: Some(uri_spec), ..self }
    }

    /// In this state. Default: [`Enabled`](InstanceState::Enabled).
    #[must_use]
    pub fn with_state(self, state: InstanceState) -> Self {
        Self { state, ..self }
    }

    /// With this kind of node, for [`to_json`](Self::to_json). Default: [`Dynamic`](ServiceType::Dynamic),
    /// the only kind that can be [registered](crate::Discovery::register).
    #[must_use]
    pub fn with_service_type(self, service_type: ServiceType) -> Self {
        Self { service_type, ..self }
    }

    /// With this time of registration, in milliseconds since 1970. Default: when the instance was made, by
    /// the clock of this machine.
    #[must_use]
    pub fn with_registration_time(self, milliseconds: i64) -> Self {
        Self { registered_at: milliseconds, ..self }
    }

    /// The name of the service.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id of the instance.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The address. `None` only if another client wrote none.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The port for TLS.
    #[must_use]
    pub fn ssl_port(&self) -> Option<u16> {
        self.ssl_port
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> Option<&P> {
        self.payload.as_ref()
    }

    /// The Java class of the payload, as its writer gave it.
    #[must_use]
    pub fn payload_class(&self) -> Option<&str> {
        self.payload_class.as_deref()
    }

    /// When the instance was registered, by the clock of its machine.
    #[must_use]
    pub fn registered_at(&self) -> SystemTime {
        let span = Duration::from_millis(self.registered_at.unsigned_abs());
        let time = match self.registered_at {
            0.. => SystemTime::UNIX_EPOCH.checked_add(span),
            _ => SystemTime::UNIX_EPOCH.checked_sub(span),
        };
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The kind of node.
    #[must_use]
    pub fn service_type(&self) -> ServiceType {
        self.service_type
    }

    /// The text that the URI is built from.
    #[must_use]
    pub fn uri_spec(&self) -> Option<&UriSpec> {
        self.uri_spec.as_ref()
    }

    /// The URI, built from the [URI spec](Self::with_uri_spec); `None` without one.
    #[must_use]
    pub fn uri(&self) -> Option<String> {
        let value = |name: &str| match name {
            "scheme" => Some(if self.ssl_port.is_some() { "https" } else { "http" }.to_owned()),
            "name" => Some(self.name.clone()),
            "id" => Some(self.id.clone()),
            "address" => self.address.clone(),
            "port" => self.port.map(|port| port.to_string()),
            "ssl-port" => self.ssl_port.map(|port| port.to_string()),
            "registration-time-utc" => Some(self.registered_at.to_string()),
            "service-type" => Some(self.service_type.to_string()),
            _ => None,
        };
        self.uri_spec.as_ref().map(|spec| spec.build(value))
    }

    /// Whether clients should choose the instance.
    #[must_use]
    pub fn state(&self) -> InstanceState {
        self.state
    }

    /// Whether the state is [`Enabled`](InstanceState::Enabled).
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.state == InstanceState::Enabled
    }
}

impl Display for ServiceType {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Dynamic => "DYNAMIC",
            Self::DynamicSequential => "DYNAMIC_SEQUENTIAL",
            Self::Static => "STATIC",
            Self::Permanent => "PERMANENT",
        })
    }
}

impl Display for InstanceState {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Enabled => "enabled",
            Self::Draining => "draining",
        })
    }
}
