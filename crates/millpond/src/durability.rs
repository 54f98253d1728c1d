//! When a push or an ack is answered.

/// The durability policy of a queue, or of one push.
///
/// | policy | answered when | survives a killed process | survives a power cut |
/// |---|---|---|---|
/// | `Sync` | its own fsync returned | yes | yes |
/// | `Group` | the fsync it shares returned | yes | yes |
/// | `None` | the store has applied it | on the log: yes | no |
///
/// This holds for pushes and acks alike. With [`Builder::durable_acks(false)`](crate::Builder::durable_acks) acks are
/// answered as under `None`: a lost ack delivers its entry again, and no push is weaker for it. One push may ask for
/// another policy ([`Queue::push_with`](crate::Queue::push_with)); it gets at least that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Each operation is a commit of its own, made durable before the call returns.
    #[default]
    Sync,
    /// Operations that arrive while a commit is on its way share the next one. The same guarantee as `Sync`.
    Group,
    /// No fsync. On the log the bytes are handed to the operating system before the call returns.
    None,
}

impl Durability {
    /// The policy's name in options and figures.
    pub fn as_str(self) -> &'static str {
        match self {
            Durability::Sync => "sync",
            Durability::Group => "group",
            Durability::None => "none",
        }
    }
}
