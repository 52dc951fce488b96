//! Calls to the scheme of a host, whichever it is: a match, not a pointer.

/// `AnyHostScheme` and `AnyHostFlow`, with a variant for each host scheme of the registry.
macro_rules! host_schemes {
    (
        switch $switch_schemes:tt
        host { $($host_module:ident: $Host:ident $(| $Leaf:ident)?, $host_order:ident, $host_title:literal, $host_source:literal;)* }
        reference { $($reference_module:ident: $Reference:ident, $reference_order:ident, $reference_title:literal, $reference_source:literal;)* }
    ) => {
        hosts::any_host_scheme! {
            $($host_module: $Host, host::$host_module::$Host;)*
            $($reference_module: $Reference, reference::$reference_module::$Reference;)*
        }
    };
}

/// Enum over all schemes that run at hosts: a name, and the type behind it.
macro_rules! any_host_scheme {
    ($($module:ident: $Host:ident, $Scheme:path;)*) => {
        /// A host scheme, whichever it is.
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum AnyHostScheme {
            None,
            $($Host($Scheme),)*
        }

        /// State of a host scheme for one flow at one end.
        #[derive(Default)]
        #[allow(missing_docs)]
        pub enum AnyHostFlow {
            #[default]
            None,
            $($Host(<$Scheme as HostScheme>::Flow),)*
        }

        impl AnyHostScheme {
            /// The state of a new flow.
            pub fn new_flow(&self) -> AnyHostFlow {
                match self {
                    Self::None => AnyHostFlow::None,
                    $(Self::$Host(_) => AnyHostFlow::$Host(Default::default()),)*
                }
            }

            /// As [`HostScheme::on_send`].
            #[inline]
            pub fn on_send(&mut self, cx: &mut impl HostContext, flow: &mut AnyHostFlow, packet: &mut Packet) {
                match (self, flow) {
                    $((Self::$Host(scheme), AnyHostFlow::$Host(flow)) => scheme.on_send(cx, flow, packet),)*
                    _ => {}
                }
            }

            /// As [`HostScheme::on_receive`].
            #[inline]
            pub fn on_receive(&mut self, cx: &mut impl HostContext, flow: &mut AnyHostFlow, packet: Packet) {
                match (self, flow) {
                    $((Self::$Host(scheme), AnyHostFlow::$Host(flow)) => scheme.on_receive(cx, flow, packet),)*
                    _ => cx.deliver(packet),
                }
            }

            /// As [`HostScheme::start`].
            pub fn start(&mut self, cx: &mut impl HostContext) {
                match self {
                    Self::None => {}
                    $(Self::$Host(scheme) => scheme.start(cx),)*
                }
            }

            /// As [`HostScheme::message`].
            pub fn message(&mut self, cx: &mut impl HostContext, message: Message) {
                match self {
                    Self::None => {}
                    $(Self::$Host(scheme) => scheme.message(cx, message),)*
                }
            }

            /// As [`HostScheme::host_timer`].
            pub fn host_timer(&mut self, cx: &mut impl HostContext, token: u32) {
                match self {
                    Self::None => {}
                    $(Self::$Host(scheme) => scheme.host_timer(cx, token),)*
                }
            }

            /// As [`HostScheme::timed_out`].
            pub fn timed_out(&mut self, cx: &mut impl HostContext, flow: &mut AnyHostFlow) {
                match (self, flow) {
                    $((Self::$Host(scheme), AnyHostFlow::$Host(flow)) => scheme.timed_out(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`HostScheme::finished`].
            pub fn finished(&mut self, cx: &mut impl HostContext, flow: &mut AnyHostFlow) {
                match (self, flow) {
                    $((Self::$Host(scheme), AnyHostFlow::$Host(flow)) => scheme.finished(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`HostScheme::flow_timer`].
            pub fn flow_timer(&mut self, cx: &mut impl HostContext, flow: &mut AnyHostFlow) {
                match (self, flow) {
                    $((Self::$Host(scheme), AnyHostFlow::$Host(flow)) => scheme.flow_timer(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`HostScheme::state_bytes`].
            pub fn state_bytes(&self) -> u64 {
                match self {
                    Self::None => 0,
                    $(Self::$Host(scheme) => scheme.state_bytes(),)*
                }
            }

            /// As [`HostScheme::table_bytes`].
            pub fn table_bytes(&self) -> u64 {
                match self {
                    Self::None => 0,
                    $(Self::$Host(scheme) => scheme.table_bytes(),)*
                }
            }

            /// As [`HostScheme::counters`].
            pub fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
                match self {
                    Self::None => {}
                    $(Self::$Host(scheme) => scheme.counters(count),)*
                }
            }
        }

        impl AnyHostFlow {
            /// As [`HostScheme::held`].
            pub fn held(&self) -> usize {
                match self {
                    Self::None => 0,
                    $(Self::$Host(flow) => <$Scheme as HostScheme>::held(flow),)*
                }
            }
        }
    };
}

pub(super) use {any_host_scheme, host_schemes};
