//! What the queue keeps in a store: the envelope of an entry and the meta record.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond::testing::{decode_meta, encode_meta, payload_offset};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(offset) = payload_offset(bytes) {
        assert!(offset >= 1 && offset <= bytes.len());
    }
    if let Some((ceiling, codec)) = decode_meta(bytes) {
        assert!(codec.len() <= bytes.len());
        assert_eq!(decode_meta(&encode_meta(ceiling, &codec)), Some((ceiling, codec)));
    }
});
