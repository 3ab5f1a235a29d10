//! Changes of path settings while the association runs.

use std::sync::Arc;

use tresse_policy::PathId;

use super::mtu::PathMtu;
use super::path::MtuRule;
use super::{Path, PathRules, Paths};
use crate::config::AssociationConfig;
use crate::interface::adjustment::{PacketSize, PathAdjustment};

impl Paths {
    /// Applies `rules`, those of `config`, to all paths. A path's own settings stay, except for those that `change` has.
    pub(crate) fn adjust(
        &mut self,
        rules: &Arc<PathRules>,
        config: &AssociationConfig,
        change: &PathAdjustment,
    ) {
        self.health.set_max_retrans(config.association_max_retrans);
        let bounds = rules.rto;
        let rebounds = self.rules.rto != bounds;
        self.rules = Arc::clone(rules);
        for position in 0..self.len() {
            let id = PathId(position as u8);
            let path = self.path_mut(id);
            if rebounds {
                path.rtt.rebound(&bounds);
            }
            if let Some(own) = &mut path.own_watch {
                own.adjust(change);
            }
            if path.set_packet_size(change.packet_size, rules.mtu) {
                self.refresh_payload(id);
            }
        }
    }

    /// Changes settings of one path.
    pub(crate) fn adjust_one(&mut self, id: PathId, change: &PathAdjustment) {
        let (watch, mtu) = (self.rules.watch, self.rules.mtu);
        let path = self.path_mut(id);
        path.own_watch.get_or_insert_with(|| Box::new(watch)).adjust(change);
        if path.set_packet_size(change.packet_size, mtu) {
            self.refresh_payload(id);
        }
    }
}

impl Path {
    /// Sets a fixed packet size, or lets it be searched up to the size in `rule`. Returns whether that was requested and
    /// changes anything.
    fn set_packet_size(&mut self, size: Option<PacketSize>, rule: MtuRule) -> bool {
        let (MtuRule::Given(ceiling) | MtuRule::UpTo(ceiling)) = rule;
        match size {
            Some(PacketSize::Fixed(size)) => self.mtu = PathMtu::given(size),
            Some(PacketSize::Discovered) if self.mtu.is_given() => {
                self.mtu = PathMtu::discovered(ceiling, self.headers_len(), self.remote.is_ipv6());
            }
            Some(PacketSize::Discovered) | None => return false,
        }
        true
    }
}
