//! Any transport as one type: a match, made from the registry.

/// Defines the type from the variants of the registry and their protocols.
macro_rules! any_protocol {
    ($($variant:ident($protocol:ty),)*) => {
        /// Any transport, told apart by a match: no call goes through a pointer.
        #[derive(Debug, Clone)]
        #[allow(missing_docs, reason = "the variants are the transports of the registry")]
        pub enum AnyProtocol { $($variant($protocol),)* }

        /// The sending end of a flow over any transport.
        #[derive(Debug, Clone)]
        #[allow(missing_docs, reason = "the variants are the transports of the registry")]
        pub enum AnySender { $($variant(<$protocol as Protocol>::Sender),)* }

        /// The receiving end of a flow over any transport.
        #[derive(Debug, Clone)]
        #[allow(missing_docs, reason = "the variants are the transports of the registry")]
        pub enum AnyReceiver { $($variant(<$protocol as Protocol>::Receiver),)* }

        /// Asks the protocol.
        macro_rules! ask {
            ($any:expr, $p:ident => $call:expr) => {
                match $any { $(AnyProtocol::$variant($p) => $call,)* }
            };
        }

        /// Lets the protocol act with one of its own ends. An end of another transport is never
        /// given to it.
        macro_rules! act {
            ($any:expr, $end:ident $ends:ident, $otherwise:expr, $p:ident => $call:expr) => {
                match ($any, $end) {
                    $((AnyProtocol::$variant($p), $ends::$variant($end)) => $call,)*
                    _ => {
                        debug_assert!(false, "an end of another transport");
                        $otherwise
                    }
                }
            };
        }

        impl Protocol for AnyProtocol {
            type Sender = AnySender;
            type Receiver = AnyReceiver;

            fn segmentation(&self) -> Segmentation {
                ask!(self, p => p.segmentation())
            }

            fn handshake_wire_bytes(&self) -> Option<(u16, u16)> {
                ask!(self, p => p.handshake_wire_bytes())
            }

            fn asks_when_free(&self) -> bool {
                ask!(self, p => p.asks_when_free())
            }

            #[inline]
            fn is_rnic_scheduled(&self) -> bool {
                ask!(self, p => p.is_rnic_scheduled())
            }

            fn needs_fabric(&self) -> bool {
                ask!(self, p => p.needs_fabric())
            }

            fn configure(&mut self, known: KnownFabric) {
                ask!(self, p => p.configure(known));
            }

            fn requirements(&self) -> Requirements {
                ask!(self, p => p.requirements())
            }

            fn uses_ecn(&self) -> bool {
                ask!(self, p => p.uses_ecn())
            }

            fn takes_writes(&self) -> bool {
                ask!(self, p => p.takes_writes())
            }

            fn limit(&self, sender: &mut AnySender, written: Written) {
                act!(self, sender AnySender, (), p => p.limit(sender, written));
            }

            fn credit_ports(&self) -> Option<CreditPorts> {
                ask!(self, p => p.credit_ports())
            }

            fn sender(&self, size: FlowSize) -> AnySender {
                match self { $(Self::$variant(p) => AnySender::$variant(p.sender(size)),)* }
            }

            fn receiver(&self, size: FlowSize) -> AnyReceiver {
                match self { $(Self::$variant(p) => AnyReceiver::$variant(p.receiver(size)),)* }
            }

            fn finished_receiver(&self, size: FlowSize) -> Option<AnyReceiver> {
                match self {
                    $(Self::$variant(p) => p.finished_receiver(size).map(AnyReceiver::$variant),)*
                }
            }

            fn counted(&self) -> Counted {
                ask!(self, p => p.counted())
            }

            fn sender_stats(&self, sender: &AnySender) -> SenderStats {
                act!(self, sender AnySender, SenderStats::default(), p => p.sender_stats(sender))
            }

            fn receiver_stats(&self, receiver: &AnyReceiver) -> ReceiverStats {
                act!(self, receiver AnyReceiver, ReceiverStats::default(), p => p.receiver_stats(receiver))
            }

            fn prefetch_sender(&self, sender: &AnySender, tell: impl FnMut(*const u8)) {
                act!(self, sender AnySender, (), p => p.prefetch_sender(sender, tell))
            }

            fn sender_held_until(&self, sender: &AnySender, now: Time) -> Time {
                act!(self, sender AnySender, now, p => p.sender_held_until(sender, now))
            }

            fn window(&self, sender: &AnySender) -> Option<WindowState> {
                act!(self, sender AnySender, None, p => p.window(sender))
            }
        }

        impl Multipath for AnyProtocol {
            fn five_tuples(&self) -> FiveTuples {
                ask!(self, p => p.five_tuples())
            }

            fn start(&self, sender: &mut AnySender, out: &mut impl Ports) {
                act!(self, sender AnySender, (), p => p.start(sender, out));
            }

            fn sender_writes(&self, sender: &mut AnySender, written: Written, out: &mut impl Ports) {
                act!(self, sender AnySender, (), p => p.sender_writes(sender, written, out));
            }

            fn sender_pull(&self, sender: &mut AnySender, out: &mut impl Ports) -> Pull {
                let never = Pull::NotBefore(Time::NEVER);
                act!(self, sender AnySender, never, p => p.sender_pull(sender, out))
            }

            fn sender_receives(
                &self,
                sender: &mut AnySender,
                arrived: ArrivedPacket<'_>,
                out: &mut impl Ports,
            ) -> SenderState {
                act!(self, sender AnySender, SenderState::Open, p => p.sender_receives(sender, arrived, out))
            }

            fn sender_wakes(&self, sender: &mut AnySender, out: &mut impl Ports) -> SenderState {
                act!(self, sender AnySender, SenderState::Open, p => p.sender_wakes(sender, out))
            }

            fn receiver_receives(
                &self,
                receiver: &mut AnyReceiver,
                arrived: ArrivedPacket<'_>,
                out: &mut impl Ports,
            ) -> Delivery {
                act!(self, receiver AnyReceiver, Delivery::Ongoing, p => p.receiver_receives(receiver, arrived, out))
            }

            fn receiver_wakes(&self, receiver: &mut AnyReceiver, out: &mut impl Ports) -> Delivery {
                act!(self, receiver AnyReceiver, Delivery::Ongoing, p => p.receiver_wakes(receiver, out))
            }
        }
    };
}
pub(crate) use any_protocol;
