//! Eager and lazy: when events are read and decoded, and that nothing else tells them apart.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use arch_event_queues::{DurableEventQueue, DurableEventQueueOptions};
use borsh::{BorshDeserialize, BorshSerialize};
use proptest::prelude::*;

use crate::counting_store::Counted;

static DECODED: AtomicU64 = AtomicU64::new(0);

/// Counts how often one is decoded. Used by one test only.
#[derive(Clone, BorshSerialize)]
struct Tallied(u32);

impl BorshDeserialize for Tallied {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
        DECODED.fetch_add(1, Ordering::SeqCst);
        u32::deserialize_reader(reader).map(Self)
    }
}

/// A fault of the published crate: opening reads every value.
#[test]
fn lazy_reads_and_decodes_what_is_popped_and_eager_decodes_once() {
    const EVENTS: u64 = 50;
    let store = Counted::default();
    let open = |options| DurableEventQueue::<Tallied>::with_store(store.clone(), options).unwrap();
    let decoded = || DECODED.swap(0, Ordering::SeqCst);

    let queue = open(DurableEventQueueOptions::lazy());
    for n in 0..50 {
        queue.push(Tallied(n)).unwrap();
    }
    drop(queue);
    store.values_read();

    let queue = open(DurableEventQueueOptions::lazy());
    assert_eq!((store.values_read(), decoded()), (0, 0), "opening reads no value");
    assert_eq!((queue.len().unwrap(), queue.ready_len().unwrap()), (50, 50));
    queue.ack(40).unwrap();
    queue.nack(41).unwrap();
    assert_eq!((store.values_read(), decoded()), (0, 0), "nor does counting or settling");
    assert_eq!(queue.pop().unwrap().unwrap().event.0, 0);
    assert_eq!((store.values_read(), decoded()), (1, 1), "one for one that is popped");
    drop(queue);

    let queue = open(DurableEventQueueOptions::eager());
    assert_eq!((store.values_read(), decoded()), (EVENTS - 1, EVENTS - 1));
    assert_eq!(queue.get(10).unwrap().unwrap().event.0, 9);
    queue.ack(20).unwrap();
    assert!(queue.get(20).unwrap().is_none());
    let mut popped = 0;
    while let Some(event) = queue.pop().unwrap() {
        assert_eq!(u64::from(event.event.0) + 1, event.id);
        popped += 1;
    }
    assert_eq!((popped, decoded()), (EVENTS - 2, 0), "decoded when the queue was opened");
    queue.nack(5).unwrap();
    assert_eq!(queue.pop().unwrap().unwrap().event.0, 4, "an event that comes again is decoded again");
    assert_eq!(decoded(), 1);
}

/// One step of a consumer or producer.
#[derive(Clone, Debug)]
enum Step {
    Push(u16),
    Pop,
    Ack(u64),
    AckMany(Vec<u64>),
    Nack(u64),
    Reopen,
}

fn any_step() -> impl Strategy<Value = Step> {
    let id = 0u64..12;
    prop_oneof![
        3 => any::<u16>().prop_map(Step::Push),
        3 => Just(Step::Pop),
        2 => id.clone().prop_map(Step::Ack),
        1 => prop::collection::vec(id.clone(), 0..4).prop_map(Step::AckMany),
        2 => id.prop_map(Step::Nack),
        1 => Just(Step::Reopen),
    ]
}

/// What a queue must be, kept in the plainest way: event, id, whether it is in flight.
#[derive(Default)]
struct Model {
    last: u64,
    events: Vec<(u64, u16, bool)>,
}

impl Model {
    fn pop(&mut self) -> Option<(u64, u16)> {
        let next = self.events.iter_mut().find(|(_, _, in_flight)| !in_flight)?;
        next.2 = true;
        Some((next.0, next.1))
    }

    fn ack(&mut self, ids: &[u64]) {
        self.events.retain(|(id, ..)| !ids.contains(id));
    }

    fn nack(&mut self, id: u64) {
        self.events.iter_mut().filter(|event| event.0 == id).for_each(|event| event.2 = false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn both_modes_are_what_the_model_says(
        steps in prop::collection::vec(any_step(), 0..60),
        is_lazy in any::<bool>(),
    ) {
        let options =
            if is_lazy { DurableEventQueueOptions::lazy() } else { DurableEventQueueOptions::eager() };
        let store = Counted::default();
        let open = || DurableEventQueue::<u16>::with_store(store.clone(), options).unwrap();
        let mut queue = open();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Push(event) => {
                    let pushed = queue.push(event).unwrap();
                    prop_assert!(pushed.id > model.last);
                    model.last = pushed.id;
                    model.events.push((pushed.id, event, false));
                }
                Step::Pop => {
                    let popped = queue.pop().unwrap().map(|event| (event.id, event.event));
                    prop_assert_eq!(popped, model.pop());
                }
                Step::Ack(id) => {
                    queue.ack(id).unwrap();
                    model.ack(&[id]);
                }
                Step::AckMany(ids) => {
                    queue.ack_many(ids.iter().copied()).unwrap();
                    model.ack(&ids);
                }
                Step::Nack(id) => {
                    queue.nack(id).unwrap();
                    model.nack(id);
                }
                Step::Reopen => {
                    drop(queue);
                    queue = open();
                    model.events.iter_mut().for_each(|event| event.2 = false);
                }
            }
            let ready = model.events.iter().filter(|event| !event.2).count();
            prop_assert_eq!(queue.len().unwrap(), model.events.len());
            prop_assert_eq!(queue.ready_len().unwrap(), ready);
            let stored: Vec<(u64, u16)> =
                queue.iterator().map(|event| event.unwrap()).map(|event| (event.id, event.event)).collect();
            let expected: Vec<(u64, u16)> = model.events.iter().map(|event| (event.0, event.1)).collect();
            prop_assert_eq!(stored, expected);
            for id in 0..12 {
                let expected = model.events.iter().find(|event| event.0 == id).map(|event| event.1);
                prop_assert_eq!(queue.get(id).unwrap().map(|event| event.event), expected);
            }
        }
    }
}
