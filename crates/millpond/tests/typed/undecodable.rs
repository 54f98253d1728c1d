use std::time::Duration;

use millpond::store::{LogStore, MemStore};
use millpond::typed::Undecodable;
use millpond::{Builder, ErrorCode, Failure, Queue, ReadError, ReserveError};

use crate::order::{FirstRelease, Order, SecondRelease, order, pieces};

/// What the codec rejects, if that is what happened.
fn rejected<T: std::fmt::Debug>(outcome: Result<T, ReserveError>) -> Undecodable {
    match outcome {
        Err(ReserveError::Decode(entry)) => entry,
        other => panic!("{other:?}"),
    }
}

fn rejected_read<T: std::fmt::Debug>(outcome: Result<T, ReadError>) -> Undecodable {
    match outcome {
        Err(ReadError::Decode(entry)) => entry,
        other => panic!("{other:?}"),
    }
}

/// A queue in memory with a bad entry between two good ones.
fn queue_with_a_bad_entry() -> Queue<Order, FirstRelease> {
    let queue: Queue<Order, FirstRelease> = Builder::new(MemStore::new()).open_typed_with().unwrap();
    queue.push(&order(1)).unwrap();
    queue.bytes().push(b"no order").unwrap();
    queue.push(&order(3)).unwrap();
    queue
}

/// Case O-22: an item that cannot be decoded.
#[test]
fn o_22_an_item_that_cannot_be_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || Builder::new(LogStore::open(dir.path()).unwrap());
    let queue: Queue<Order, FirstRelease> = builder().open_typed_with().unwrap();
    queue.push_many(&[order(1), order(20), order(30)]).unwrap();
    queue.bytes().push(b"no order").unwrap();
    queue.push_many(&[order(50), order(60)]).unwrap();
    drop(queue);

    let queue: Queue<Order, SecondRelease> = builder().open_typed_with().unwrap();
    assert_eq!((queue.len(), queue.ready_len()), (6, 6));
    assert_eq!(pieces(&queue), [0, 20, 30, 0, 50, 60], "an entry that is no order is an error in its place");
    assert_eq!(queue.get(2).unwrap(), Some(order(20)));
    assert_eq!(rejected_read(queue.get(1)).bytes(), [1, 0, 0, 0]);
    assert_eq!(rejected_read(queue.get(4)).bytes(), b"no order");
    assert_eq!(queue.in_flight().len(), 0, "reading delivers nothing");

    // The application's loop, which does nothing about errors.
    let (mut handled, mut failed) = (Vec::new(), Vec::new());
    let mut calls = 0;
    loop {
        calls += 1;
        assert!(calls < 20, "a loop without an end: {failed:?}");
        match queue.reserve() {
            Ok(Some(item)) => {
                handled.push(item.pieces);
                item.ack().unwrap();
            }
            Ok(None) => break,
            Err(ReserveError::Decode(entry)) => failed.push((entry.id(), entry.deliveries())),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(handled, [20, 30, 50, 60]);
    assert_eq!(failed, [(1, 1), (4, 1)], "each once, without an end of its own doing");
    assert_eq!(calls, 7);
    assert_eq!((queue.len(), queue.in_flight().len()), (2, 2), "neither acked nor dropped");
    drop(queue);

    // The loop of the documentation: skip what the release rejects, keep what nothing can read.
    let queue: Queue<Order, SecondRelease> = builder().open_typed_with().unwrap();
    assert_eq!(queue.len(), 2, "both are there after a reopen");
    let entry = rejected(queue.reserve());
    assert_eq!((entry.id(), entry.bytes(), entry.codec()), (1, &[1, 0, 0, 0][..], "order"));
    assert_eq!(entry.to_string(), "entry 1 cannot be decoded by order: an order has at least 10 pieces");
    assert!(entry.ack().unwrap());
    assert!(!entry.ack().unwrap() && !entry.nack().unwrap(), "settled once");
    let entry = rejected(queue.reserve());
    assert_eq!(entry.id(), 4);
    assert!(queue.reserve().unwrap().is_none());
    assert!(entry.nack().unwrap());
    let again = rejected(queue.reserve());
    assert_eq!((again.id(), again.deliveries()), (4, 2), "in its own place, at the application's wish");
    // Moved by hand.
    let aside = Builder::new(MemStore::new()).open().unwrap();
    aside.push(again.bytes()).unwrap();
    assert!(again.ack().unwrap());
    drop(queue);
    assert_eq!(builder().open_typed_with::<Order, SecondRelease>().unwrap().len(), 0);
}

#[test]
fn a_dropped_error_leaves_the_entry_in_flight_and_the_queue_going() {
    let queue = queue_with_a_bad_entry();
    assert_eq!(queue.reserve().unwrap().unwrap().detach().id, 1);
    drop(rejected(queue.reserve()));
    assert_eq!(queue.reserve().unwrap().unwrap().detach().id, 3);
    let in_flight: Vec<u64> = queue.in_flight().iter().map(|item| item.id).collect();
    assert_eq!(in_flight, [1, 2, 3]);
    assert!(queue.nack(2), "it can still be put back by its id");
    assert_eq!(rejected(queue.reserve_timeout(Duration::ZERO)).id(), 2);
    assert!(queue.ack(2).unwrap());
    assert_eq!(queue.len(), 2);
}

#[test]
fn clones_of_an_error_settle_one_delivery() {
    let queue = queue_with_a_bad_entry();
    queue.ack(1).unwrap();
    let first = rejected(queue.reserve());
    let handle = first.handle().unwrap();
    let clone = first.clone();
    assert!(first.nack().unwrap());
    assert!(!clone.nack().unwrap() && !clone.ack().unwrap());
    let second = rejected(queue.reserve());
    assert_ne!(second.handle().unwrap().generation, handle.generation);
    assert!(!clone.ack().unwrap(), "an older handle never touches a newer delivery");
    assert!(second.ack().unwrap());
    assert_eq!(queue.len(), 1);
}

#[test]
fn several_at_once_have_the_error_in_its_place() {
    let queue = queue_with_a_bad_entry();
    let items = queue.reserve_many(10).unwrap();
    let ids: Vec<Result<u64, u64>> = items
        .iter()
        .map(|item| item.as_ref().map(millpond::Reserved::seq).map_err(Undecodable::id))
        .collect();
    assert_eq!(ids, [Ok(1), Err(2), Ok(3)]);
    for item in &items {
        assert!(item.as_ref().map_or_else(Undecodable::ack, millpond::Reserved::ack).unwrap());
    }
    assert!(queue.is_empty());
}

#[test]
fn an_entry_that_was_only_read_is_acked_by_its_id() {
    let queue = queue_with_a_bad_entry();
    let errors: Vec<Undecodable> = (&queue)
        .into_iter()
        .filter_map(Result::err)
        .map(|error| rejected_read(Err::<(), _>(error)))
        .collect();
    let [entry] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!((entry.id(), entry.bytes(), entry.deliveries()), (2, &b"no order"[..], 0));
    assert!(entry.handle().is_none() && !entry.nack().unwrap());
    assert!(entry.ack().unwrap() && !entry.ack().unwrap());
    assert_eq!(pieces(&queue), [1, 3]);
}

#[test]
fn the_errors_have_the_code_and_the_id() {
    let queue = queue_with_a_bad_entry();
    let error = queue.get(2).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Decode);
    queue.ack(1).unwrap();
    let error = queue.reserve().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Decode);
    let failure = Failure::from(error);
    assert_eq!((failure.code(), failure.id()), (ErrorCode::Decode, Some(2)));
    assert!(!format!("{failure:?}").contains("no order"), "payloads stay out of messages");
}

#[test]
fn an_error_outlives_its_queue() {
    let queue = queue_with_a_bad_entry();
    queue.ack(1).unwrap();
    let entry = rejected(queue.reserve());
    drop(queue);
    assert_eq!(entry.bytes(), b"no order");
    assert_eq!(entry.ack().unwrap_err().code(), ErrorCode::Closed);
}

#[test]
fn a_codec_that_panics_loses_nothing() {
    use millpond::typed::{Codec, CodecError};
    struct Panics;
    impl Codec<Order> for Panics {
        const NAME: &'static str = "order";
        fn encode(order: &Order, into: &mut Vec<u8>) -> Result<(), CodecError> {
            FirstRelease::encode(order, into)
        }
        fn decode(_: &[u8]) -> Result<Order, CodecError> {
            panic!("a codec of no account");
        }
    }
    let queue = Builder::new(MemStore::new()).open_typed_with::<Order, Panics>().unwrap();
    queue.push(&order(1)).unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.reserve().is_ok()));
    assert!(caught.is_err());
    assert_eq!((queue.len(), queue.ready_len()), (1, 1));
}
