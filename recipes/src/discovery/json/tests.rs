use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::discovery::NoPayload;

/// As Curator 5.4 writes it, with Jackson 2.14.
const PLAIN: &str = concat!(
    r#"{"name":"web","id":"i-1","address":"10.0.0.7","port":8080,"sslPort":null,"payload":null,"#,
    r#""registrationTimeUTC":1610116500446,"serviceType":"DYNAMIC","uriSpec":null}"#,
);
const PERMANENT: &str = concat!(
    r#"{"name":"web","id":"i-1","address":"10.0.0.7","port":8080,"sslPort":8443,"payload":null,"#,
    r#""registrationTimeUTC":1610116500446,"serviceType":"PERMANENT","uriSpec":{"parts":["#,
    r#"{"value":"scheme","variable":true},{"value":"://","variable":false},"#,
    r#"{"value":"address","variable":true},{"value":":","variable":false},"#,
    r#"{"value":"port","variable":true},{"value":"/x","variable":false}]},"enabled":false}"#,
);

/// The data of an instance with this payload, as Curator writes it.
fn with_payload(payload: &str) -> String {
    PLAIN.replace(r#""payload":null"#, &format!(r#""payload":{payload}"#))
}

fn read<P: DeserializeOwned>(text: &str) -> Instance<P> {
    super::read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn written<P: Serialize>(instance: &Instance<P>) -> String {
    String::from_utf8(write(instance, false).unwrap()).unwrap()
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Meta {
    zone: String,
    weight: i32,
    load: f64,
}

#[test]
fn what_curator_wrote_is_read_and_written_back_byte_for_byte() {
    let instance: Instance = read(PLAIN);
    assert_eq!((instance.name(), instance.id(), instance.address()), ("web", "i-1", Some("10.0.0.7")));
    assert_eq!((instance.port(), instance.ssl_port(), instance.payload()), (Some(8080), None, None));
    assert!(instance.is_enabled() && instance.uri_spec().is_none());
    assert_eq!(written(&instance), PLAIN);

    let instance: Instance = read(PERMANENT);
    assert_eq!(instance.service_type(), ServiceType::Permanent);
    assert_eq!(instance.state(), InstanceState::Draining);
    assert_eq!(instance.uri().as_deref(), Some("https://10.0.0.7:8080/x"));
    assert_eq!(written(&instance), PERMANENT);
}

#[test]
fn enabled_is_written_last_if_it_is_asked_for() {
    let instance: Instance = read(PLAIN);
    let expected = PLAIN.replace("null}", r#"null,"enabled":true}"#);
    assert_eq!(write(&instance, true).unwrap(), expected.as_bytes());
    assert_eq!(read::<NoPayload>(&expected), instance);
    // As Curator reads it.
    let null = PLAIN.replace("null}", r#"null,"enabled":null}"#);
    assert!(!read::<NoPayload>(&null).is_enabled());
}

#[test]
fn every_payload_that_curator_writes_is_read_and_written_back_byte_for_byte() {
    fn same<P: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        payload: &str,
        expected: P,
        class: Option<&str>,
    ) {
        let data = with_payload(payload);
        let instance = read::<P>(&data);
        assert_eq!(instance.payload(), Some(&expected), "{payload}");
        assert_eq!(instance.payload_class(), class, "{payload}");
        assert_eq!(written(&instance), data);
    }
    let meta = Meta { zone: "eu".to_owned(), weight: 3, load: 1e10 };
    same(r#"{"@class":"Probe$Meta","zone":"eu","weight":3,"load":1.0E10}"#, meta, Some("Probe$Meta"));
    let map = BTreeMap::from([("k".to_owned(), Value::from("v")), ("n".to_owned(), Value::from(1))]);
    same(r#"{"@class":"java.util.LinkedHashMap","k":"v","n":1}"#, map, Some("java.util.LinkedHashMap"));
    same(r#"{"@class":"java.util.HashMap"}"#, BTreeMap::<String, u8>::new(), Some("java.util.HashMap"));
    let list = vec!["a".to_owned(), "b".to_owned()];
    same(r#"["java.util.ArrayList",["a","b"]]"#, list.clone(), Some("java.util.ArrayList"));
    same(r#"["a","b"]"#, list, None);
    same(r#"["java.lang.Long",5]"#, 5_u64, Some("java.lang.Long"));
    same("5", 5_u64, None);
    same("0.1", 0.1_f64, None);
    same("true", true, None);
    same(r#""\u001F \uD83D\uDE00 ü""#, "\u{1f} \u{1f600} ü".to_owned(), None);
    same(
        r#"{"zone":"eu","weight":-1,"load":9.9E-4}"#,
        Meta { zone: "eu".into(), weight: -1, load: 0.00099 },
        None,
    );
}

#[test]
fn a_payload_keeps_its_bytes_where_no_type_is_asked_for() {
    let payload = r#"{"z":[1.50,{"@class":"inner"}],"a":null}"#;
    let data = with_payload(&payload.replace("{\"z\"", r#"{"@class":"x.Y","z""#));
    let instance = read::<Box<RawValue>>(&data);
    assert_eq!(instance.payload().unwrap().get(), payload);
    assert_eq!(written(&instance), data);
    // No payload is asked for: any is read.
    for payload in [payload, "[1]", "\"x\"", "null", r#"["x.Y",1]"#] {
        read::<NoPayload>(&with_payload(payload));
    }
}

/// As Spring Cloud registers an instance: the payload has a class, and fields of any depth.
const SPRING_CLOUD: &str = concat!(
    r#"{"name":"web","id":"c7a3a1b0-6f0c-4a8e-9d2a-0f6f1d0a5c11","address":"10.0.0.7","port":8080,"#,
    r#""sslPort":null,"payload":{"#,
    r#""@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","#,
    r#""id":"web","name":"web","metadata":{"instance_status":"UP","zone":"north"}},"#,
    r#""registrationTimeUTC":1610116500446,"serviceType":"DYNAMIC","uriSpec":{"parts":["#,
    r#"{"value":"scheme","variable":true},{"value":"://","variable":false},"#,
    r#"{"value":"address","variable":true},{"value":":","variable":false},"#,
    r#"{"value":"port","variable":true}]}}"#,
);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ZookeeperInstance {
    id: String,
    name: String,
    metadata: BTreeMap<String, String>,
}

#[test]
fn what_spring_cloud_registers_is_read_and_written_back_byte_for_byte() {
    let class = "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance";
    let bare = r#""metadata":{"instance_status":"UP","zone":"north"}"#;
    for data in [SPRING_CLOUD.to_owned(), SPRING_CLOUD.replace(bare, r#""metadata":{}"#)] {
        let raw = read::<Box<RawValue>>(&data);
        assert_eq!((raw.payload_class(), raw.uri().as_deref()), (Some(class), Some("http://10.0.0.7:8080")));
        assert_eq!(written(&raw), data);
        let typed = read::<ZookeeperInstance>(&data);
        let payload = typed.payload().unwrap();
        assert_eq!((&*payload.id, &*payload.name, typed.payload_class()), ("web", "web", Some(class)));
        let zone = data.contains(bare).then_some("north");
        assert_eq!(payload.metadata.get("zone").map(String::as_str), zone);
        assert_eq!(written(&typed), data);
    }
}

#[test]
fn fields_that_curator_can_do_without_may_be_missing_and_unknown_ones_are_ignored() {
    let instance: Instance = read(r#"{"name":"web","id":"i","weather":{"is":["good"]}}"#);
    assert_eq!((instance.address(), instance.port(), instance.registered_at), (None, None, 0));
    assert_eq!(instance.service_type(), ServiceType::Dynamic);
    let expected = concat!(
        r#"{"name":"web","id":"i","address":null,"port":null,"sslPort":null,"payload":null,"#,
        r#""registrationTimeUTC":0,"serviceType":"DYNAMIC","uriSpec":null}"#,
    );
    assert_eq!(written(&instance), expected);
    assert!(read::<NoPayload>(r#"{"id":"i","serviceType":null,"name":""}"#).is_enabled());
}

#[test]
fn data_that_is_no_instance_is_an_error_that_says_why() {
    for (text, why) in [
        ("", "EOF"),
        ("10.0.0.7", "invalid"),
        ("{}", "missing field `name`"),
        (r#"{"name":"web"}"#, "missing field `id`"),
        (r#"{"name":"web","id":"i","port":70000}"#, "70000"),
        (r#"{"name":"web","id":"i","port":-1}"#, "-1"),
        (r#"{"name":"web","id":"i","serviceType":"ODD"}"#, "ODD"),
        (r#"{"name":"web","id":"i"} x"#, "trailing"),
        (r#"{"name":"web","id":"i","payload":{"@class":"x","zone":5}}"#, "the payload: "),
        (r#"{"name":"web","id":"i","payload":["x.Y",5]}"#, "the payload: "),
    ] {
        let error = super::read::<Meta>(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    assert!(super::read::<NoPayload>(b"\xff\xfe").is_err());
    let deep = format!(r#"{{"name":"web","id":"i","payload":{}"#, "[".repeat(100_000));
    assert!(super::read::<NoPayload>(deep.as_bytes()).is_err());
}

#[test]
fn a_payload_that_cannot_be_json_is_refused() {
    let payload = BTreeMap::from([(vec![1], 2)]);
    let refused = Instance::new("web", "h", 1).with_payload(payload).to_json().unwrap_err();
    assert!(matches!(refused, Error::Config(_)), "{refused}");
}

proptest! {
    #[test]
    fn every_instance_is_read_as_it_was_written(
        (name, id, address) in (".*", ".*", proptest::option::of(".*")),
        (port, ssl_port) in any::<(Option<u16>, Option<u16>)>(),
        payload in proptest::option::of((".*", any::<i64>(), proptest::num::f64::NORMAL)),
        class in proptest::option::of(".*"),
        registered_at in any::<i64>(),
        is_enabled in any::<bool>(),
    ) {
        let payload_class = payload.is_some().then_some(class).flatten();
        let state = if is_enabled { InstanceState::Enabled } else { InstanceState::Draining };
        let (service_type, uri_spec) = (ServiceType::Static, Some("{scheme}://x".parse().unwrap()));
        let instance = Instance {
            name, id, address, port, ssl_port, payload, payload_class, registered_at, service_type, uri_spec,
            state,
        };
        for with_enabled in [false, true] {
            let data = write(&instance, with_enabled).unwrap();
            prop_assert_eq!(&super::read::<(String, i64, f64)>(&data).unwrap(), &instance);
        }
    }

    #[test]
    fn no_data_panics(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = super::read::<Value>(&data);
    }
}
