//! The decoder of frames: nothing passes that is not whole, of this life and at its place.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond::testing::{forge_frame, frame_at, seed_of};

fuzz_target!(|input: (Vec<u8>, u8, u8, u64, u32, u32)| {
    let (bytes, kind, flags, id, seed, place) = input;
    let offset = u64::from(place) * 8;
    let _ = seed_of(&bytes);
    let _ = frame_at(&bytes, seed, offset);
    let frame = forge_frame(kind, flags, id, &bytes, seed, offset);
    let found = frame_at(&frame, seed, offset);
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    // Zeros are no frame, so kind 0 never is.
    assert_eq!(found, (kind != 0).then_some((kind, id, length)));
    if kind == 0 {
        return;
    }
    assert_eq!(frame_at(&frame, seed, offset + 8), None, "a frame passed at another place");
    assert_eq!(frame_at(&frame, seed ^ 1, offset), None, "a frame of another life passed");
    for bit in 0..24 * 8 {
        let mut changed = frame.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(frame_at(&changed, seed, offset), None, "bit {bit} of the header is not checked");
    }
});
