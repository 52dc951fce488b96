//! Messages among the hosts of a rack: reports to the proxy, and its view (MEET §3.2).

use std::sync::Arc;

use weft_units::Time;

use super::congestion::Tally;
use super::knowledge::is_fresh;
use super::wire::{self, Entry, Kind};
use super::{Meet, Prober};
use crate::{HostContext, Message};

impl Meet {
    /// Each `T_update`: tells the proxy what is new, and as the proxy tells the rack what it knows
    /// (MEET §3.2).
    pub(super) fn update<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        let now = cx.now();
        self.term.elect(now, self.params.proxy_timeout, self.params.update);
        let mut news = self.knowledge.take_news();
        // A failed path is news as long as somebody here still probes it.
        news.retain(|entry| {
            !entry.has_failed() || self.is_wanted(self.paths.rack_of(entry.path as usize), now)
        });
        if !is_fresh(self.term.viewed_at(), now, self.params.window) {
            self.see_alone(&news);
        }
        self.sent += 1;
        if self.term.is_mine() {
            let me = self.term.proxy();
            for part in wire::encode(&news) {
                self.pool.receive(me, self.sent, now, part);
            }
            self.tell_rack(cx);
        } else if !news.is_empty() || self.reported != self.term.number() {
            self.report(cx, &news);
        }
    }

    /// Without a proxy, a host's own data is all there is.
    fn see_alone(&mut self, news: &[Entry]) {
        self.knowledge.forget_view();
        for entry in news {
            let tally = Tally { total: f64::from(entry.value), packets: entry.packets };
            self.knowledge.see(&tally.mean().map_or(*entry, |value| Entry { value, ..*entry }));
        }
    }

    /// A host that gets a report of a term that it did not know of learns that it is the proxy. So
    /// the first one of a term is sent even if there is nothing new.
    fn report<C: HostContext + ?Sized>(&mut self, cx: &mut C, news: &[Entry]) {
        self.reported = self.term.number();
        for part in wire::encode(news) {
            let bytes = self.tell(cx, Kind::Report, self.term.proxy(), part);
            self.counts.reports += 1;
            self.counts.report_bytes += bytes;
        }
        self.counts.report_path_bytes += (news.len() * wire::PATH_BYTES) as u64;
    }

    /// Works the view out, and tells it to every other host of the rack: also if it is empty, as a
    /// sign of life.
    fn tell_rack<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        let view = self.pool.view(cx.now());
        self.knowledge.forget_view();
        for entry in &view {
            self.knowledge.see(entry);
        }
        self.viewed(cx.now());
        for part in wire::encode(&view) {
            for member in (0..self.members.len()).filter(|&member| member != self.term.proxy()) {
                let bytes = self.tell(cx, Kind::View, member, Arc::clone(&part));
                self.counts.views += 1;
                self.counts.view_bytes += bytes;
            }
        }
    }

    /// Sends a packet of a report or view. Bytes that it takes.
    fn tell<C: HostContext + ?Sized>(&self, cx: &mut C, kind: Kind, member: usize, part: Arc<[u32]>) -> u64 {
        let wire_bytes = wire::wire_bytes(&part);
        cx.send(Message {
            peer: self.members[member],
            wire_bytes,
            tag: kind.tag(self.term.number()),
            number: self.sent,
            contents: Some(part),
            ..Message::default()
        });
        u64::from(wire_bytes)
    }

    pub(super) fn reported(&mut self, now: Time, report: Message, term: u32) {
        if self.term.follow(term, now)
            && let Ok(member) = self.members.binary_search(&report.peer)
            && let Some(part) = report.contents
        {
            if self.params.prober == Prober::Proxy {
                for entry in wire::decode(&part) {
                    self.reported_at[usize::from(self.paths.rack_of(entry.path as usize))] = Some(now);
                }
            }
            self.pool.receive(member, report.number, now, part);
        }
    }

    pub(super) fn told(&mut self, now: Time, view: &Message, term: u32) {
        if !self.term.follow(term, now) {
            return;
        }
        if self.view != (view.peer, view.number) {
            self.view = (view.peer, view.number);
            self.knowledge.forget_view();
            if self.params.prober == Prober::Proxy {
                // A host that was the proxy once does not probe any more: what it saw then must not
                // last for ever.
                self.knowledge.trust_view();
            }
        }
        wire::decode(view.contents.as_deref().unwrap_or_default())
            .for_each(|entry| self.knowledge.see(&entry));
        self.viewed(now);
    }

    fn viewed(&mut self, now: Time) {
        if let Some(gap) = self.term.viewed(now) {
            self.counts.proxy_changes += 1;
            self.counts.proxy_gap_ps += gap.as_ps();
        }
    }
}
