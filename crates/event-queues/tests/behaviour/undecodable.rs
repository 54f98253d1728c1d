use std::io;

use arch_event_queues::millpond::store::LogStore;
use arch_event_queues::millpond::typed::Undecodable;
use arch_event_queues::millpond::{Builder, ErrorCode};
use arch_event_queues::{DurableEventQueue, DurableEventQueueError};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::durable::{Job, MODES, job};

/// The second release of a job, which must not be empty.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
struct Stricter {
    payload: String,
}

impl BorshDeserialize for Stricter {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
        let payload = String::deserialize_reader(reader)?;
        if payload.is_empty() {
            return Err(io::Error::other("a job has a payload"));
        }
        Ok(Self { payload })
    }
}

fn undecodable<T: std::fmt::Debug>(outcome: Result<T, DurableEventQueueError>) -> Undecodable {
    match outcome {
        Err(DurableEventQueueError::Undecodable(event)) => event,
        other => panic!("{other:?}"),
    }
}

/// Case O-22: an item that cannot be decoded. Three jobs, bytes that are none, two more jobs; then a release that also
/// rejects the first.
#[test]
fn o_22_an_item_that_cannot_be_decoded() {
    const NONE: &[u8] = &[255, 255, 255, 255, 0];
    for mode in MODES {
        let dir = tempfile::tempdir().unwrap();
        let store = || LogStore::open(dir.path()).unwrap();
        let queue = DurableEventQueue::<Job>::with_store(store(), mode()).unwrap();
        for payload in ["", "b", "c"] {
            queue.push(job(payload)).unwrap();
        }
        drop(queue);
        Builder::new(store()).codec("borsh").open().unwrap().push(NONE).unwrap();
        let queue = DurableEventQueue::<Job>::with_store(store(), mode()).unwrap();
        let later = [queue.push(job("e")).unwrap().id, queue.push(job("f")).unwrap().id];
        drop(queue);

        let open = || DurableEventQueue::<Stricter>::with_store(store(), mode()).unwrap();
        let queue = open();
        assert_eq!((queue.len().unwrap(), queue.ready_len().unwrap()), (6, 6));
        let read: Vec<Option<String>> =
            queue.iterator().map(|event| event.ok().map(|event| event.event.payload)).collect();
        let text = |payload: &str| Some(payload.to_owned());
        assert_eq!(read, [None, text("b"), text("c"), None, text("e"), text("f")]);
        let first = undecodable(queue.get(1));
        assert_eq!((first.id(), first.bytes()), (1, &[0; 4][..]));

        // The application's loop, which only logs errors.
        let (mut handled, mut failed) = (Vec::new(), Vec::new());
        loop {
            assert!(failed.len() < 10, "a loop without an end: {failed:?}");
            match queue.poll() {
                Ok(Some(event)) => {
                    handled.push(event.event.payload);
                    queue.ack(event.id).unwrap();
                }
                Ok(None) => break,
                Err(error) => failed.push(undecodable(Err::<(), _>(error)).id()),
            }
        }
        assert_eq!(handled, ["b", "c", "e", "f"]);
        let [bad, other] = failed[..] else { panic!("each once: {failed:?}") };
        assert_eq!(bad, 1);
        assert!(3 < other && other < later[0]);
        assert_eq!((queue.len().unwrap(), queue.ready_len().unwrap()), (2, 0), "neither acked nor dropped");
        drop(queue);

        // What the documentation says: skip it, or put it back and read its bytes.
        let queue = open();
        let event = undecodable(queue.pop());
        assert_eq!((event.id(), event.code()), (1, ErrorCode::Decode));
        assert!(event.ack().unwrap());
        let event = undecodable(queue.pop());
        assert_eq!((event.id(), event.bytes()), (other, NONE));
        queue.nack(event.id()).unwrap();
        let event = undecodable(queue.pop());
        assert_eq!((event.id(), event.deliveries()), (other, 2));
        queue.ack(event.id()).unwrap();
        assert!(queue.is_empty().unwrap());
        assert!(queue.pop().unwrap().is_none());
    }
}
