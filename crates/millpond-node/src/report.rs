//! Figures and reports as plain objects.

use millpond::store::{Damage, RecoveryReport};
use millpond::{InFlight, Stats};
use napi_derive::napi;

use crate::number::to_js;

/// An entry in flight.
#[napi(object)]
pub struct NativeInFlight {
    /// Its id.
    pub id: f64,
    /// How often it was delivered since open.
    pub deliveries: u32,
    /// How long ago it was delivered.
    pub age_ms: f64,
}

impl From<InFlight> for NativeInFlight {
    fn from(entry: InFlight) -> Self {
        Self { id: to_js(entry.id), deliveries: entry.deliveries, age_ms: entry.age.as_secs_f64() * 1000.0 }
    }
}

/// Counters of a queue since open.
#[napi(object)]
pub struct NativeStats {
    /// Unacked entries.
    pub length: f64,
    /// Entries ready to be delivered.
    pub ready: f64,
    /// Entries in flight.
    pub in_flight: f64,
    /// Pushes that wait for room.
    pub waiting_pushes: f64,
    /// Entries pushed.
    pub pushed: f64,
    /// Entries acked.
    pub acked: f64,
    /// Deliveries nacked.
    pub nacked: f64,
    /// Deliveries.
    pub delivered: f64,
    /// Deliveries beyond the first of an entry.
    pub redelivered: f64,
    /// Commits.
    pub commits: f64,
    /// Operations in them.
    pub committed_ops: f64,
    /// Whether a failed write has stopped all writing.
    pub poisoned: bool,
    /// Figures of the store.
    pub store: NativeStoreStats,
}

/// Figures of a store.
#[napi(object)]
pub struct NativeStoreStats {
    /// Bytes of unacked entries.
    pub live_bytes: f64,
    /// Bytes of all files.
    pub disk_bytes: f64,
    /// Files in use.
    pub segments: f64,
    /// Calls of fsync or fdatasync by the write path.
    pub syncs: f64,
}

impl From<Stats> for NativeStats {
    fn from(stats: Stats) -> Self {
        Self {
            length: to_js(stats.length),
            ready: to_js(stats.ready),
            in_flight: to_js(stats.in_flight),
            waiting_pushes: to_js(stats.waiting_pushes),
            pushed: to_js(stats.pushed),
            acked: to_js(stats.acked),
            nacked: to_js(stats.nacked),
            delivered: to_js(stats.delivered),
            redelivered: to_js(stats.redelivered),
            commits: to_js(stats.commits),
            committed_ops: to_js(stats.committed_operations),
            poisoned: stats.poisoned,
            store: NativeStoreStats {
                live_bytes: to_js(stats.store.live_bytes),
                disk_bytes: to_js(stats.store.disk_bytes),
                segments: to_js(stats.store.segments),
                syncs: to_js(stats.store.syncs),
            },
        }
    }
}

/// What opening found.
#[napi(object)]
pub struct NativeRecovery {
    /// The last life ended with a clean close, or the queue is new.
    pub clean: bool,
    /// Bytes of a torn tail.
    pub dropped_tail_bytes: f64,
    /// What cannot be read.
    pub damage: Vec<NativeDamage>,
}

/// One stretch of damage.
#[napi(object, use_nullable = true)]
pub struct NativeDamage {
    /// The file.
    pub file: String,
    /// Where it begins.
    pub offset: f64,
    /// How long it is.
    pub bytes: f64,
    /// The lowest id concerned.
    pub first_id: Option<f64>,
    /// The highest id concerned.
    pub last_id: Option<f64>,
    /// What is wrong.
    pub reason: String,
}

impl From<RecoveryReport> for NativeRecovery {
    fn from(report: RecoveryReport) -> Self {
        Self {
            clean: report.clean,
            dropped_tail_bytes: to_js(report.dropped_tail_bytes),
            damage: report.damage.into_iter().map(NativeDamage::from).collect(),
        }
    }
}

impl From<Damage> for NativeDamage {
    fn from(damage: Damage) -> Self {
        Self {
            file: damage.file,
            offset: to_js(damage.offset),
            bytes: to_js(damage.bytes),
            first_id: damage.first_id.map(to_js),
            last_id: damage.last_id.map(to_js),
            reason: damage.reason.to_owned(),
        }
    }
}
