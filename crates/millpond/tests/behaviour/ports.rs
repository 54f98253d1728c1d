use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use millpond::store::MemStore;
use millpond::{Builder, Durability, Entry, ErrorCode, Failure, Port, Queue, Reserved, Settled, Sink};

use crate::fault_store::{Disk, FaultStore};

enum Event {
    Settled(Vec<Settled>),
    Delivered(Result<Vec<Reserved>, Failure>),
    Scanned(u64, Result<Vec<Entry>, Failure>),
    Finished(Result<(), Failure>),
}

struct Channel(Sender<Event>);

impl Sink for Channel {
    fn settled(&self, settled: Vec<Settled>) {
        let _ = self.0.send(Event::Settled(settled));
    }

    fn delivered(&self, items: Result<Vec<Reserved>, Failure>) {
        let _ = self.0.send(Event::Delivered(items));
    }

    fn scanned(&self, token: u64, entries: Result<Vec<Entry>, Failure>) {
        let _ = self.0.send(Event::Scanned(token, entries));
    }

    fn finished(&self, result: Result<(), Failure>) {
        let _ = self.0.send(Event::Finished(result));
    }
}

fn port(queue: &Queue) -> (Port, Receiver<Event>) {
    let (sender, receiver) = channel();
    (queue.port(Box::new(Channel(sender))), receiver)
}

fn event(receiver: &Receiver<Event>) -> Event {
    receiver.recv_timeout(Duration::from_secs(20)).expect("an event comes")
}

fn settled(receiver: &Receiver<Event>) -> Vec<Settled> {
    match event(receiver) {
        Event::Settled(settled) => settled,
        _ => panic!("another event came"),
    }
}

fn delivered(receiver: &Receiver<Event>) -> Vec<Reserved> {
    match event(receiver) {
        Event::Delivered(items) => items.unwrap(),
        _ => panic!("another event came"),
    }
}

#[test]
fn pushes_of_one_crossing_settle_in_one_call() {
    let disk = Disk::new();
    let queue = Builder::new(FaultStore(Arc::clone(&disk))).durability(Durability::Group).open().unwrap();
    let (port, events) = port(&queue);
    let submitted = port.push_each(b"aabbbc", &[2, 3, 1], None);
    assert!(submitted.settled.is_none());
    let told = settled(&events);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].token, told[0].count), (submitted.token, 3));
    assert_eq!(*told[0].outcome.as_ref().unwrap(), 1);
    assert_eq!(queue.get(2).unwrap().unwrap(), b"bbb");

    // What piles up while a commit is on its way shares the next one, and one call tells of it.
    disk.hold();
    let first = port.push_each(b"x", &[1], None);
    let attempts = disk.count(&disk.attempts);
    while disk.count(&disk.attempts) <= attempts.saturating_sub(1) {
        std::thread::yield_now();
    }
    let second = port.push_each(b"yy", &[1, 1], None);
    let third = port.push_each(b"z", &[1], None);
    disk.release();
    let mut tokens = Vec::new();
    while tokens.len() < 4 {
        for run in settled(&events) {
            assert!(run.outcome.is_ok());
            tokens.extend(run.token..run.token + u64::from(run.count));
        }
    }
    assert_eq!(tokens, [first.token, second.token, second.token + 1, third.token]);
}

#[test]
fn none_settles_on_the_calling_thread() {
    let queue = Builder::new(MemStore::new()).durability(Durability::None).open().unwrap();
    let (port, events) = port(&queue);
    let first = port.push_each(b"a", &[1], None);
    if first.settled.is_none() {
        settled(&events);
    }
    let submitted = port.push_each(b"bc", &[1, 1], None);
    assert_eq!(submitted.settled.unwrap().unwrap(), 2);
    let items = port.try_take(10).unwrap();
    let handles: Vec<_> = items.into_iter().map(Reserved::detach).collect();
    let (accepted, acked) = port.ack(&handles);
    assert_eq!(accepted, [true; 3]);
    assert!(acked.settled.unwrap().is_ok());
    assert_eq!(queue.len(), 0);
}

#[test]
fn what_finds_no_room_waits_in_order_and_can_be_withdrawn() {
    let queue = Builder::new(MemStore::new()).capacity(2).durability(Durability::Group).open().unwrap();
    let (port, events) = port(&queue);
    let submitted = port.push_each(b"abcde", &[1; 5], None);
    let mut done = 0;
    while done < 2 {
        done += settled(&events).iter().map(|run| run.count).sum::<u32>();
    }
    assert_eq!((queue.len(), queue.stats().waiting_pushes), (2, 3));
    assert!(port.try_push(b"x", None).is_none());
    assert!(!port.withdraw(submitted.token), "it has an id");
    assert!(port.withdraw(submitted.token + 3));
    assert!(!port.withdraw(submitted.token + 3));
    assert_eq!(queue.ack_many(&[1, 2]).unwrap(), 2);
    let told = settled(&events);
    let tokens: Vec<_> = told.iter().map(|run| run.token).collect();
    assert_eq!(tokens, [submitted.token + 2, submitted.token + 4]);
    let payloads: Vec<_> = queue.iter().map(|entry| entry.unwrap().payload).collect();
    assert_eq!(payloads, [b"c", b"e"]);
}

#[test]
fn each_sweep_fills_exactly_the_demand() {
    let queue = Builder::new(MemStore::new()).durability(Durability::Group).open().unwrap();
    let (port, events) = port(&queue);
    port.demand(2);
    queue.push_many(&[b"a", b"b", b"c"]).unwrap();
    let mut items = delivered(&events);
    while items.len() < 2 {
        items.extend(delivered(&events));
    }
    assert_eq!((items.len(), queue.ready_len()), (2, 1));
    // One request was withdrawn after its item had been delivered: giving it back evens the demand out.
    port.undemand(1);
    let surplus = items.pop().unwrap().detach();
    assert!(port.give_back(surplus));
    assert_eq!(queue.ready_len(), 2);
    port.demand(1);
    let again = delivered(&events);
    assert_eq!((again[0].seq(), again[0].deliveries()), (2, 1), "nobody saw the first delivery");
    assert!(events.recv_timeout(Duration::from_millis(50)).is_err(), "no demand is left");
}

#[test]
fn items_a_sink_drops_are_ready_again() {
    let queue = Builder::new(MemStore::new()).durability(Durability::Group).open().unwrap();
    let (port, events) = port(&queue);
    queue.push(b"a").unwrap();
    port.demand(1);
    drop(delivered(&events));
    assert_eq!(queue.ready_len(), 1);
    assert_eq!(queue.reserve().unwrap().unwrap().deliveries(), 2);
}

#[test]
fn scans_and_acks_by_id_answer_by_token() {
    let queue = Builder::new(MemStore::new()).durability(Durability::Group).open().unwrap();
    let (port, events) = port(&queue);
    queue.push_many(&[b"a", b"b", b"c"]).unwrap();
    let token = port.scan(2, 10);
    match event(&events) {
        Event::Scanned(found, entries) => {
            assert_eq!(found, token);
            let entries = entries.unwrap();
            assert_eq!(entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), [2, 3]);
        }
        _ => panic!("another event came"),
    }
    let submitted = port.ack_ids(&[1, 3, 9]);
    let told = settled(&events);
    assert_eq!((told[0].token, *told[0].outcome.as_ref().unwrap()), (submitted.token, 2));
}

#[test]
fn finish_refuses_what_waits_and_then_says_so() {
    let queue = Builder::new(MemStore::new()).capacity(1).durability(Durability::Group).open().unwrap();
    let (port, events) = port(&queue);
    let _submitted = port.push_each(b"ab", &[1, 1], None);
    while queue.is_empty() {
        std::thread::yield_now();
    }
    port.demand(1);
    port.finish();
    let (mut closed, mut finished) = (0, false);
    while !finished {
        match event(&events) {
            Event::Settled(told) => {
                closed += told
                    .iter()
                    .filter(|run| {
                        run.outcome.as_ref().is_err_and(|failure| failure.code() == ErrorCode::Closed)
                    })
                    .count();
            }
            Event::Finished(result) => {
                result.unwrap();
                finished = true;
            }
            _ => {}
        }
    }
    assert_eq!(closed, 1);
    let late = port.push_each(b"c", &[1], None);
    assert_eq!(late.settled.unwrap().unwrap_err().code(), ErrorCode::Closed);
    port.finish();
    assert!(matches!(event(&events), Event::Finished(Ok(()))));
}
