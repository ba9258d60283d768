//! Whatever bytes come, decoding them ends, and so does giving the result to a machine. `PROPTEST_CASES` asks
//! for more than the usual 256 cases.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Frame, MAX_FRAME, decode_connect, decode_request, read_frame};
use crate::fuzzing::{ready, serve};
use crate::protocol::ConnectRequest;

const OPCODES: [i32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 100, 101, 102, 103, 104, 105,
    106, 107, -10, -11, 999,
];

/// Pieces that records are made of, so that more than noise gets past the first field.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let string = |text: &str| [&(text.len() as i32).to_be_bytes(), text.as_bytes()].concat();
    let path =
        prop_oneof![Just("/a"), Just("/"), Just("/a/b"), Just("/zookeeper"), Just(""), Just("x"), Just("/é")];
    prop_oneof![
        4 => path.prop_map(string),
        2 => prop_oneof![Just("world"), Just("anyone"), Just("digest"), Just("auth"), Just("ip")]
            .prop_map(string),
        4 => prop_oneof![
            Just(-1), Just(0), Just(1), Just(2), Just(31), Just(i32::MAX), Just(i32::MIN), any::<i32>()
        ]
            .prop_map(|number: i32| number.to_be_bytes().to_vec()),
        1 => any::<i64>().prop_map(|number| number.to_be_bytes().to_vec()),
        2 => any::<bool>().prop_map(|flag| vec![u8::from(flag)]),
        // The header of an operation in a transaction.
        2 => (prop::sample::select(&OPCODES[..]), any::<bool>())
            .prop_map(|(op, done)| [&op.to_be_bytes()[..], &[u8::from(done)], &[0xff; 4]].concat()),
        1 => vec(any::<u8>(), 0..40),
    ]
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let body = vec(piece(), 0..12).prop_map(|pieces| pieces.concat());
    (any::<i32>(), prop::sample::select(&OPCODES[..]), body)
        .prop_map(|(xid, op, body)| [&xid.to_be_bytes()[..], &op.to_be_bytes(), &body].concat())
}

proptest! {
    #[test]
    fn noise_never_panics_the_decoder(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode_connect(Bytes::from(bytes.clone()));
        let _ = decode_request(Bytes::from(bytes));
    }

    #[test]
    fn noise_never_panics_the_framing(bytes in vec(any::<u8>(), 0..200), first: bool) {
        let mut rest = bytes.as_slice();
        while let Some(Ok(Frame::Body(body))) = ready(read_frame(&mut rest, first, MAX_FRAME)) {
            prop_assert!(body.len() <= MAX_FRAME);
        }
    }

    #[test]
    fn no_sequence_of_requests_panics_the_machine(frames in vec(request(), 0..40), ttl_nodes: bool) {
        serve(ttl_nodes, ConnectRequest::default(), frames.into_iter().map(Bytes::from));
    }

    #[test]
    fn truncated_requests_are_malformed_or_shorter_but_never_panic(
        frame in request(), cut in any::<prop::sample::Index>(),
    ) {
        let kept = cut.index(frame.len());
        let _ = decode_request(Bytes::from(frame).slice(..kept));
    }
}

#[test]
fn announced_counts_set_no_memory_aside() {
    // A list of two billion paths, of which none is there.
    let frame = [&1_i32.to_be_bytes()[..], &101_i32.to_be_bytes(), &[0; 8], &i32::MAX.to_be_bytes()].concat();
    let (_, request) = decode_request(Bytes::from(frame)).unwrap();
    assert!(matches!(request, crate::protocol::Request::Malformed { .. }));
}
