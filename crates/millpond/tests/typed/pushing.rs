use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use millpond::store::{LogStore, MemStore};
use millpond::typed::{Codec, CodecError};
use millpond::{Builder, Durability, ErrorCode, OpenError, PushError, Queue, TryPushError};

use crate::order::{FirstRelease, Order, Text, order, pieces};

fn open() -> Queue<Order, FirstRelease> {
    Builder::new(MemStore::new()).capacity(4).open_typed_with().unwrap()
}

#[test]
fn values_come_back_in_order_whichever_way_they_were_pushed() {
    let queue = open();
    assert_eq!(queue.push(&order(1)).unwrap(), 1);
    assert_eq!(queue.try_push(&order(2)).unwrap(), 2);
    assert_eq!(queue.push_with(&order(3), Some(Durability::None), None).unwrap(), 3);
    let mut push = pin!(queue.push_async(&order(4)));
    let id = loop {
        match push.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(id) => break id.unwrap(),
            Poll::Pending => std::thread::yield_now(),
        }
    };
    assert_eq!(id, 4);
    assert_eq!(pieces(&queue), [1, 2, 3, 4]);
    assert_eq!(queue.get(3).unwrap(), Some(order(3)));
    assert_eq!(queue.get(9).unwrap(), None);

    let item = queue.reserve().unwrap().unwrap();
    assert_eq!((item.seq(), item.deliveries(), item.pieces), (1, 1, 1));
    assert!(item.ack().unwrap());
    let items = queue.reserve_many(2).unwrap();
    assert_eq!(items.len(), 2);
    drop(items);
    let (handle, value) = queue.reserve_timeout(Duration::ZERO).unwrap().unwrap().into_value();
    assert_eq!((handle.id, value), (2, order(2)));
    assert_eq!(queue.in_flight().len(), 1, "into_value ends the care for the item");
    assert!(queue.nack(2));
    assert_eq!(queue.reserve().unwrap().unwrap().detach().id, 2);
}

#[test]
fn many_values_are_one_commit_and_all_or_none() {
    let queue = open();
    let commits = queue.stats().commits;
    assert_eq!(queue.push_many(&[order(1), order(2)]).unwrap(), [1, 2]);
    assert!(queue.stats().commits <= commits + 2, "one for the entries, one for the lease");
    assert_eq!(queue.push_many(&[]).unwrap(), [0; 0]);

    let error = queue.push_many(&[order(3), order(2_000_000)]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Encode);
    assert_eq!(queue.len(), 2);
    assert_eq!(queue.push(&order(3)).unwrap(), 3, "no id was used");
    assert_eq!(pieces(&queue), [1, 2, 3]);
}

#[test]
fn a_value_that_cannot_be_encoded_is_refused_before_anything_happens() {
    let queue = open();
    let unfit = order(2_000_000);
    let error = queue.push(&unfit).unwrap_err();
    assert!(matches!(error, PushError::Encode { codec: "order", .. }));
    assert_eq!(error.to_string(), "order cannot store this value: more than a million pieces");
    let error = queue.try_push(&unfit).unwrap_err();
    assert!(matches!(error, TryPushError::Encode { codec: "order", .. }));
    assert_eq!(error.code(), ErrorCode::Encode);
    let mut push = pin!(queue.push_async(&unfit));
    match push.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => assert_eq!(outcome.unwrap_err().code(), ErrorCode::Encode),
        Poll::Pending => panic!("nothing to wait for"),
    }
    assert_eq!((queue.len(), queue.stats().commits), (0, 0));
}

#[test]
fn a_full_queue_refuses_values_too() {
    let queue = open();
    queue.push_many(&[order(1), order(2), order(3), order(4)]).unwrap();
    assert!(matches!(queue.try_push(&order(5)), Err(TryPushError::Full)));
    let timeout = Some(Duration::from_millis(5));
    assert!(matches!(queue.push_with(&order(5), None, timeout), Err(PushError::Timeout)));
    queue.close();
    assert!(matches!(queue.push(&order(5)), Err(PushError::Closed)));
}

#[test]
fn another_codec_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Builder::new(LogStore::open(dir.path()).unwrap());
    let queue: Queue<Order, FirstRelease> = open().open_typed_with().unwrap();
    queue.push(&order(1)).unwrap();
    drop(queue);

    for (asked, opened) in [
        ("order-text", open().open_typed_with::<Order, Text>().map(|queue| queue.bytes())),
        ("bytes", open().open()),
    ] {
        let error = opened.unwrap_err();
        assert_eq!(error.code(), ErrorCode::CodecMismatch);
        assert_eq!(error.to_string(), format!("the queue was written with codec \"order\", not {asked:?}"));
        assert!(matches!(error, OpenError::CodecMismatch { .. }));
    }
    // The codec's own name stands, whatever the builder was told.
    let queue = open().codec("order-text").open_typed_with::<Order, FirstRelease>().unwrap();
    assert_eq!(pieces(&queue), [1]);
    drop(queue);
    // By its name the queue opens as bytes.
    let queue = open().codec("order").open().unwrap();
    assert_eq!(queue.get(1).unwrap().unwrap(), [1, 0, 0, 0]);
}

#[test]
fn a_codec_without_a_usable_name_is_refused() {
    struct Nameless;
    impl Codec<Order> for Nameless {
        const NAME: &'static str = "";
        fn encode(_: &Order, _: &mut Vec<u8>) -> Result<(), CodecError> {
            Ok(())
        }
        fn decode(_: &[u8]) -> Result<Order, CodecError> {
            Ok(order(0))
        }
    }
    let error = Builder::new(MemStore::new()).open_typed_with::<Order, Nameless>().unwrap_err();
    assert!(matches!(error, OpenError::CodecName { bytes: 0, .. }));
}

#[test]
fn a_typed_queue_can_be_shared_whatever_its_values_are() {
    fn shared<Q: Send + Sync + Clone + 'static>(_: &Q) {}
    /// Holds a pointer that must stay on its thread.
    struct Local(std::rc::Rc<()>);
    struct ByCount;
    impl Codec<Local> for ByCount {
        const NAME: &'static str = "count";
        fn encode(local: &Local, into: &mut Vec<u8>) -> Result<(), CodecError> {
            into.push(u8::try_from(std::rc::Rc::strong_count(&local.0)).map_err(CodecError::new)?);
            Ok(())
        }
        fn decode(_: &[u8]) -> Result<Local, CodecError> {
            Ok(Local(std::rc::Rc::new(())))
        }
    }
    let queue = Builder::new(MemStore::new()).open_typed_with::<Local, ByCount>().unwrap();
    shared(&queue);
    queue.push(&Local(std::rc::Rc::new(()))).unwrap();
    assert!(queue.reserve().unwrap().unwrap().ack().unwrap());
}
