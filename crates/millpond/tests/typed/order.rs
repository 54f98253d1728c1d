//! Orders and the codecs of two releases of an application, which share a name.

use millpond::Queue;
use millpond::typed::{Codec, CodecError};

/// An order of so many pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) pieces: u32,
}

pub(crate) fn order(pieces: u32) -> Order {
    Order { pieces }
}

/// The first release: any number of pieces, in 4 bytes. More than a million are not taken.
#[derive(Debug)]
pub(crate) enum FirstRelease {}

/// The second release: orders of less than 10 pieces are no longer understood.
#[derive(Debug)]
pub(crate) enum SecondRelease {}

/// Another encoding.
#[derive(Debug)]
pub(crate) enum Text {}

impl Codec<Order> for FirstRelease {
    const NAME: &'static str = "order";

    fn encode(order: &Order, into: &mut Vec<u8>) -> Result<(), CodecError> {
        if order.pieces > 1_000_000 {
            into.extend_from_slice(b"half of a value");
            return Err(CodecError::new("more than a million pieces"));
        }
        into.extend_from_slice(&order.pieces.to_le_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Order, CodecError> {
        let bytes = bytes.try_into().map_err(CodecError::new)?;
        Ok(Order { pieces: u32::from_le_bytes(bytes) })
    }
}

impl Codec<Order> for SecondRelease {
    const NAME: &'static str = FirstRelease::NAME;

    fn encode(order: &Order, into: &mut Vec<u8>) -> Result<(), CodecError> {
        FirstRelease::encode(order, into)
    }

    fn decode(bytes: &[u8]) -> Result<Order, CodecError> {
        let order = FirstRelease::decode(bytes)?;
        if order.pieces < 10 {
            return Err(CodecError::new("an order has at least 10 pieces"));
        }
        Ok(order)
    }
}

impl Codec<Order> for Text {
    const NAME: &'static str = "order-text";

    fn encode(order: &Order, into: &mut Vec<u8>) -> Result<(), CodecError> {
        into.extend_from_slice(order.pieces.to_string().as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Order, CodecError> {
        let text = std::str::from_utf8(bytes).map_err(CodecError::new)?;
        Ok(Order { pieces: text.parse().map_err(CodecError::new)? })
    }
}

/// The pieces of every unacked order, and 0 for what is no order.
pub(crate) fn pieces<C: Codec<Order>>(queue: &Queue<Order, C>) -> Vec<u32> {
    queue.iter().map(|entry| entry.map_or(0, |entry| entry.payload.pieces)).collect()
}
