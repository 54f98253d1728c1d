use millpond::store::MemStore;
use millpond::{Builder, Durability, Queue};

fn queue() -> Queue {
    let queue = Builder::new(MemStore::new()).durability(Durability::Group).open().unwrap();
    for payload in [b"a", b"b", b"c"] {
        queue.push(payload).unwrap();
    }
    queue
}

fn next(queue: &Queue) -> millpond::Reserved {
    queue.reserve().unwrap().expect("an entry is ready")
}

#[test]
fn a_nacked_item_comes_again_in_its_own_place() {
    let queue = queue();
    let first = next(&queue);
    assert!(first.nack().unwrap());
    assert!(!first.nack().unwrap(), "settled before");
    assert!(!first.ack().unwrap(), "settled before");
    let again = next(&queue);
    assert_eq!((&*again, again.deliveries()), (&b"a"[..], 2));
}

#[test]
fn the_order_of_nacks_does_not_matter() {
    for swap in [false, true] {
        let queue = queue();
        let (a, b) = (next(&queue), next(&queue));
        let (first, second) = if swap { (&b, &a) } else { (&a, &b) };
        first.nack().unwrap();
        second.nack().unwrap();
        let next = [next(&queue), next(&queue), next(&queue)];
        assert_eq!(next.each_ref().map(|item| item.to_vec()), [b"a", b"b", b"c"]);
    }
}

#[test]
fn dropping_an_item_is_a_nack_and_a_held_one_blocks_nobody() {
    let queue = queue();
    let held = next(&queue);
    drop(next(&queue));
    let (b, c) = (next(&queue), next(&queue));
    assert_eq!((&*b, b.deliveries(), &*c), (&b"b"[..], 2, &b"c"[..]));
    assert!(queue.reserve().unwrap().is_none());
    assert_eq!((queue.len(), queue.ready_len(), queue.in_flight().len()), (3, 0, 3));
    b.ack().unwrap();
    c.ack().unwrap();
    assert_eq!((queue.len(), queue.ready_len()), (1, 0));
    held.ack().unwrap();
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_panicking_consumer_gives_its_item_back() {
    let queue = queue();
    let clone = queue.clone();
    let handler = std::thread::spawn(move || {
        let _item = next(&clone);
        std::panic::resume_unwind(Box::new("the handler failed"));
    });
    assert!(handler.join().is_err());
    assert_eq!((&*next(&queue), queue.stats().redelivered), (&b"a"[..], 1));
}

#[test]
fn an_old_handle_never_touches_a_newer_delivery() {
    let queue = queue();
    let old = next(&queue);
    assert!(queue.nack(old.seq()));
    let new = next(&queue);
    assert_eq!(new.seq(), old.seq());
    assert!(!old.nack().unwrap() && !old.ack().unwrap());
    drop(old);
    assert_eq!(queue.in_flight().len(), 1);
    assert!(new.ack().unwrap());
}

#[test]
fn a_detached_item_stays_in_flight_until_it_is_settled_by_id() {
    let queue = queue();
    let handle = next(&queue).detach();
    assert_eq!(queue.in_flight()[0].id, handle.id);
    assert!(queue.ack(handle.id).unwrap());
    assert_eq!(queue.len(), 2);
}

#[test]
fn iteration_and_get_deliver_nothing() {
    let queue = queue();
    let _held = next(&queue);
    let entries: Vec<_> = queue.iter().map(Result::unwrap).collect();
    assert_eq!(entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(entries[2].payload, b"c");
    assert_eq!(queue.get(1).unwrap().unwrap(), b"a");
    assert_eq!(queue.get(4).unwrap(), None);
    assert_eq!(queue.ready_len(), 2);
}

#[test]
fn ten_thousand_nacks_write_nothing() {
    let queue = queue();
    let commits = queue.stats().commits;
    for _ in 0..10_000 {
        next(&queue).nack().unwrap();
    }
    assert_eq!(queue.stats().commits, commits);
    assert_eq!(next(&queue).deliveries(), 10_001);
}
