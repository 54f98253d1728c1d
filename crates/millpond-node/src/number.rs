//! Ids, tokens and sizes as JavaScript numbers: integers below 2^53.

/// As a JavaScript number. Ids, generations, tokens and sizes stay below 2^53, so nothing is lost.
#[expect(clippy::cast_precision_loss, reason = "every figure that crosses is below 2^53")]
pub(crate) fn to_js(value: u64) -> f64 {
    value as f64
}

/// The length of a collection as a JavaScript number.
pub(crate) fn len_to_js(length: usize) -> f64 {
    to_js(length as u64)
}

/// From a JavaScript number; what is no unsigned integer becomes the nearest one, which names nothing that exists.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating, checked by the facade"
)]
pub(crate) fn from_js(value: f64) -> u64 {
    value as u64
}
