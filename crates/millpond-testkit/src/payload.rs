//! Payloads that tell who they are: a nonce, and bytes that follow from it.

use crate::random::Random;

/// The payload of push number `nonce`: the nonce, then up to 4 KiB that depend on it.
pub fn payload(nonce: u64) -> Vec<u8> {
    let mut random = Random::new(nonce);
    // Mostly small, now and then some pages, so that frames end at every place of a sector.
    let length = if random.below(8) == 0 { random.below(4096) } else { random.below(200) };
    let mut bytes = nonce.to_le_bytes().to_vec();
    while (bytes.len() as u64) < length + 8 {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes
}

/// The nonce of a payload, if every byte is as it was pushed.
pub fn nonce(bytes: &[u8]) -> Option<u64> {
    let (head, _) = bytes.split_first_chunk::<8>()?;
    let nonce = u64::from_le_bytes(*head);
    (payload(nonce) == bytes).then_some(nonce)
}
