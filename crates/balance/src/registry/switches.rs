//! Calls to the scheme of a switch, whichever it is: a match, not a pointer.

/// `AnySwitchScheme`, with a variant for each switch scheme of the registry, and for each host
/// scheme that may run there.
macro_rules! switch_schemes {
    (
        switch { $($switch_module:ident $(as $switch_name:literal)?: $Switch:ident, $switch_order:ident, $switch_title:literal, $switch_source:literal;)* }
        host { $($host_module:ident: $Host:ident $(| $Leaf:ident)?, $host_order:ident, $host_title:literal, $host_source:literal;)* }
        reference $references:tt
    ) => {
        switches::schemes_at_switches! {
            $($Switch, switch::$switch_module::$Switch;)*
            $($($Leaf, switch::$host_module::$Leaf;)?)*
        }
    };
}

/// Enum over all schemes that run at switches: a name, and the type behind it.
macro_rules! schemes_at_switches {
    ($($Switch:ident, $Scheme:path;)*) => {
        /// A switch scheme, whichever it is.
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum AnySwitchScheme {
            $($Switch($Scheme),)*
            External(Box<dyn ExternalScheme>),
        }

        impl AnySwitchScheme {
            /// The optional calls that an external scheme wants; none for the others, whose
            /// [`SchemeSpec`] says so.
            pub fn external_hooks(&self) -> SwitchHooks {
                match self {
                    Self::External(scheme) => scheme.hooks(),
                    _ => SwitchHooks::default(),
                }
            }

            /// As [`SwitchScheme::LOOKS_AT_QUEUES`]; an external scheme may look.
            pub const fn looks_at_queues(&self) -> bool {
                match self {
                    $(Self::$Switch(_) => <$Scheme as SwitchScheme>::LOOKS_AT_QUEUES,)*
                    Self::External(_) => true,
                }
            }

            /// As [`SwitchScheme::needs_waiting_bytes`].
            pub fn needs_waiting_bytes(&self) -> bool {
                match self {
                    $(Self::$Switch(scheme) => scheme.needs_waiting_bytes(),)*
                    Self::External(scheme) => scheme.needs_waiting_bytes(),
                }
            }

            /// As [`SwitchScheme::choose`]. Those that need many registers are calls, so that the
            /// others need not save them.
            #[inline]
            pub fn choose(
                &mut self,
                cx: &mut impl SwitchContext,
                packet: &mut Packet,
                hops: &NextHops<'_>,
            ) -> usize {
                match self {
                    $(Self::$Switch(scheme) => scheme.choose(cx, packet, hops),)*
                    Self::External(scheme) => scheme.choose(cx, packet, hops),
                }
            }

            /// Choice of a scheme that uses the five-tuple alone, without a call; `None` from all
            /// others.
            #[inline(always)]
            #[allow(clippy::inline_always)]
            pub fn choose_by_five_tuple(&self, entropy: u32, hops: &NextHops<'_>) -> Option<usize> {
                match self {
                    $(Self::$Switch(scheme) if <$Scheme as SwitchScheme>::IS_STATELESS_HASH => {
                        scheme.hash_choice(entropy, hops)
                    })*
                    _ => None,
                }
            }

            /// As [`SwitchScheme::hash_choice`].
            pub fn hash_choice(&self, entropy: u32, hops: &NextHops<'_>) -> Option<usize> {
                match self {
                    $(Self::$Switch(scheme) => scheme.hash_choice(entropy, hops),)*
                    Self::External(_) => None,
                }
            }

            /// As [`SwitchScheme::start`].
            pub fn start(&mut self, cx: &mut impl SwitchContext) {
                match self {
                    $(Self::$Switch(scheme) => scheme.start(cx),)*
                    Self::External(scheme) => scheme.start(cx),
                }
            }

            /// As [`SwitchScheme::on_arrival`].
            #[inline]
            pub fn on_arrival(&mut self, cx: &mut impl SwitchContext, packet: &mut Packet, port: PortId) -> Arrival {
                match self {
                    $(Self::$Switch(scheme) => scheme.on_arrival(cx, packet, port),)*
                    Self::External(scheme) => scheme.on_arrival(cx, packet, port),
                }
            }

            /// As [`SwitchScheme::on_timer`].
            pub fn on_timer(&mut self, cx: &mut impl SwitchContext, token: u32) {
                match self {
                    $(Self::$Switch(scheme) => scheme.on_timer(cx, token),)*
                    Self::External(scheme) => scheme.on_timer(cx, token),
                }
            }

            /// As [`SwitchScheme::on_enqueued`].
            #[inline]
            pub fn on_enqueued(&mut self, cx: &mut impl SwitchContext, packet: &mut Packet, queued: Queued) {
                match self {
                    $(Self::$Switch(scheme) => scheme.on_enqueued(cx, packet, queued),)*
                    Self::External(scheme) => scheme.on_enqueued(cx, packet, queued),
                }
            }

            /// As [`SwitchScheme::on_port_change`].
            pub fn on_port_change(&mut self, cx: &mut impl SwitchContext, port: PortId) {
                match self {
                    $(Self::$Switch(scheme) => scheme.on_port_change(cx, port),)*
                    Self::External(scheme) => scheme.on_port_change(cx, port),
                }
            }

            /// As [`SwitchScheme::explain`]; an external scheme does not say.
            pub fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
                match self {
                    $(Self::$Switch(scheme) => scheme.explain(cx, packet, hops),)*
                    Self::External(_) => None,
                }
            }

            /// As [`SwitchScheme::registers`]; none of an external scheme.
            pub fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
                match self {
                    $(Self::$Switch(scheme) => scheme.registers(set),)*
                    Self::External(_) => {}
                }
            }

            /// As [`SwitchScheme::state_bytes`].
            pub fn state_bytes(&self) -> u64 {
                match self {
                    $(Self::$Switch(scheme) => scheme.state_bytes(),)*
                    Self::External(scheme) => scheme.state_bytes(),
                }
            }

            /// As [`SwitchScheme::counters`].
            pub fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
                match self {
                    $(Self::$Switch(scheme) => scheme.counters(count),)*
                    Self::External(scheme) => scheme.counters(count),
                }
            }
        }
    };
}

pub(super) use {schemes_at_switches, switch_schemes};
