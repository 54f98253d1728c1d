//! What a delivered item derefs to.

/// The payload of an item: bytes, or any type with values. Implemented for all of them.
pub trait Payload {
    /// What an item keeps to show its payload.
    type Held;

    /// The payload in what is kept.
    fn of(held: &Self::Held) -> &Self;
}

/// The value of the entry, and where the payload begins in it.
impl Payload for [u8] {
    type Held = (Vec<u8>, usize);

    fn of((value, offset): &Self::Held) -> &Self {
        value.get(*offset..).unwrap_or(&[])
    }
}

impl<T> Payload for T {
    type Held = T;

    fn of(held: &T) -> &T {
        held
    }
}
