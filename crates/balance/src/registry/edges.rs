//! Calls to the scheme of a host, whichever it is: a match, not a pointer.

/// `EdgeScheme` and `EdgeFlow`, with a variant for each edge scheme of the registry.
macro_rules! edge_schemes {
    (
        switch $switch_schemes:tt
        edge { $($edge_module:ident: $Edge:ident $(| $Leaf:ident)?, $edge_order:ident, $edge_title:literal, $edge_source:literal;)* }
        reference { $($reference_module:ident: $Reference:ident, $reference_order:ident, $reference_title:literal, $reference_source:literal;)* }
    ) => {
        edges::host_schemes! {
            $($edge_module: $Edge, edge::$edge_module::$Edge;)*
            $($reference_module: $Reference, reference::$reference_module::$Reference;)*
        }
    };
}

/// The same of all that run at hosts: a name, and the type behind it.
macro_rules! host_schemes {
    ($($module:ident: $Edge:ident, $Scheme:path;)*) => {
        /// An edge scheme, whichever it is.
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum EdgeScheme {
            None,
            $($Edge($Scheme),)*
        }

        /// What an edge scheme keeps of one flow at one end.
        #[derive(Default)]
        #[allow(missing_docs)]
        pub enum EdgeFlow {
            #[default]
            None,
            $($Edge(<$Scheme as EdgeBalancer>::Flow),)*
        }

        impl EdgeScheme {
            /// The state of a new flow.
            pub fn new_flow(&self) -> EdgeFlow {
                match self {
                    Self::None => EdgeFlow::None,
                    $(Self::$Edge(_) => EdgeFlow::$Edge(Default::default()),)*
                }
            }

            /// As [`EdgeBalancer::sending`].
            #[inline]
            pub fn sending(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow, packet: &mut Packet) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.sending(cx, flow, packet),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::receiving`].
            #[inline]
            pub fn receiving(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow, packet: Packet) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.receiving(cx, flow, packet),)*
                    _ => cx.deliver(packet),
                }
            }

            /// As [`EdgeBalancer::start`].
            pub fn start(&mut self, cx: &mut impl EdgeContext) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.start(cx),)*
                }
            }

            /// As [`EdgeBalancer::message`].
            pub fn message(&mut self, cx: &mut impl EdgeContext, message: Message) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.message(cx, message),)*
                }
            }

            /// As [`EdgeBalancer::host_timer`].
            pub fn host_timer(&mut self, cx: &mut impl EdgeContext, token: u32) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.host_timer(cx, token),)*
                }
            }

            /// As [`EdgeBalancer::timed_out`].
            pub fn timed_out(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.timed_out(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::finished`].
            pub fn finished(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.finished(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::flow_timer`].
            pub fn flow_timer(&mut self, cx: &mut impl EdgeContext, flow: &mut EdgeFlow) {
                match (self, flow) {
                    $((Self::$Edge(scheme), EdgeFlow::$Edge(flow)) => scheme.flow_timer(cx, flow),)*
                    _ => {}
                }
            }

            /// As [`EdgeBalancer::state_bytes`].
            pub fn state_bytes(&self) -> u64 {
                match self {
                    Self::None => 0,
                    $(Self::$Edge(scheme) => scheme.state_bytes(),)*
                }
            }

            /// As [`EdgeBalancer::table_bytes`].
            pub fn table_bytes(&self) -> u64 {
                match self {
                    Self::None => 0,
                    $(Self::$Edge(scheme) => scheme.table_bytes(),)*
                }
            }

            /// As [`EdgeBalancer::counters`].
            pub fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
                match self {
                    Self::None => {}
                    $(Self::$Edge(scheme) => scheme.counters(count),)*
                }
            }
        }

        impl EdgeFlow {
            /// As [`EdgeBalancer::held`].
            pub fn held(&self) -> usize {
                match self {
                    Self::None => 0,
                    $(Self::$Edge(flow) => <$Scheme as EdgeBalancer>::held(flow),)*
                }
            }
        }
    };
}

pub(super) use {edge_schemes, host_schemes};
