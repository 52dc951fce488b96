//! Schemes in a spec: their names and parameters, and the scheme that follows from these.

/// The name of a scheme: its module's name, or the one that it is given.
macro_rules! scheme_name {
    ($module:ident) => {
        stringify!($module)
    };
    ($module:ident $name:literal) => {
        $name
    };
}

/// `SchemeSpec`, with a variant for each line of the registry, and the list of them all.
macro_rules! scheme_spec {
    (
        switch { $($switch_module:ident $(as $switch_name:literal)?: $Switch:ident, $switch_order:ident, $switch_title:literal, $switch_source:literal;)* }
        host { $($host_module:ident: $Host:ident $(| $Leaf:ident)?, $host_order:ident, $host_title:literal, $host_source:literal;)* }
        reference { $($reference_module:ident: $Reference:ident, $reference_order:ident, $reference_title:literal, $reference_source:literal;)* }
    ) => {
        /// The load balancer of a run, with its parameters.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "name", rename_all = "lowercase")]
        pub enum SchemeSpec {
            $(#[doc = $switch_title] $(#[serde(rename = $switch_name)])? $Switch(switch::$switch_module::Params),)*
            $(#[doc = $host_title] $Host(host::$host_module::Params),)*
            $(#[doc = $reference_title] $Reference(reference::$reference_module::Params),)*
            /// A class in a file of Python; `my.py:Least` in short.
            #[schemars(skip)]
            Python(PythonClass),
        }

        impl SchemeSpec {
            /// The scheme's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Switch(_) => spec::scheme_name!($switch_module $($switch_name)?),)*
                    $(Self::$Host(_) => stringify!($host_module),)*
                    $(Self::$Reference(_) => stringify!($reference_module),)*
                    Self::Python(_) => "python",
                }
            }

            /// The class that is the scheme, if it is a Python class.
            pub const fn python_class(&self) -> Option<&PythonClass> {
                match self {
                    Self::Python(class) => Some(class),
                    _ => None,
                }
            }

            /// Refuses parameters that cannot be meant.
            ///
            /// # Errors
            /// The first such parameter.
            pub fn validate(&self) -> Result<(), ParameterError> {
                match self {
                    $(Self::$Switch(params) => params.validate(),)*
                    $(Self::$Host(params) => params.validate(),)*
                    $(Self::$Reference(params) => params.validate(),)*
                    Self::Python(class) => class.validate(),
                }
            }

            /// Refuses parameters that cannot be meant on this fabric.
            ///
            /// # Errors
            /// The first such parameter.
            pub fn fits(&self, fabric: &dyn FabricFacts) -> Result<(), ParameterError> {
                match self {
                    $(Self::$Switch(params) => params.fits(fabric),)*
                    $(Self::$Host(params) => params.fits(fabric),)*
                    $(Self::$Reference(params) => params.fits(fabric),)*
                    Self::Python(class) => class.fits(fabric),
                }
            }

            /// Effect of the scheme on the order of a flow; unknown for an external scheme.
            pub fn order(&self) -> Option<Order> {
                match self {
                    $(Self::$Switch(params) => Some(params.order(Order::$switch_order)),)*
                    $(Self::$Host(params) => Some(params.order(Order::$host_order)),)*
                    $(Self::$Reference(params) => Some(params.order(Order::$reference_order)),)*
                    Self::Python(_) => None,
                }
            }

            /// How it tells flowlets apart, where this is the round trip of the idle fabric; none
            /// if nothing moves between flowlets.
            pub fn flowlets(&self, base_rtt: Span) -> Option<FlowletRule> {
                match self {
                    $(Self::$Switch(params) => params.flowlets(base_rtt),)*
                    $(Self::$Host(params) => params.flowlets(base_rtt),)*
                    _ => None,
                }
            }

            /// Whether its scheme at switches must be told [`SwitchInfo::base_rtts`].
            pub fn asks_for_base_rtts(&self) -> bool {
                match self {
                    $(Self::$Switch(params) => params.asks_for_base_rtts(),)*
                    $(Self::$Host(params) => params.asks_for_base_rtts(),)*
                    _ => false,
                }
            }

            /// Reads the files that parameters name, whose paths are absolute by now.
            ///
            /// # Errors
            /// The first that cannot be read, or does not hold what it should.
            pub fn load(&mut self) -> Result<(), ParameterError> {
                match self {
                    $(Self::$Switch(params) => params.load(),)*
                    $(Self::$Host(params) => params.load(),)*
                    $(Self::$Reference(params) => params.load(),)*
                    Self::Python(class) => class.load(),
                }
            }

            /// Whether it is no scheme but a reference: it wins no comparison.
            pub const fn is_reference(&self) -> bool {
                matches!(self, $(Self::$Reference(_))|*)
            }

            /// The scheme at one switch. Edge schemes run over ECMP, and so does a reference where
            /// the engine makes no choice for it. It is unknown of an external scheme: ECMP
            /// stands in its place until it comes.
            pub fn switch_scheme(&self, info: &SwitchInfo<'_>) -> AnySwitchScheme {
                match self {
                    $(Self::$Switch(params) => {
                        AnySwitchScheme::$Switch(switch::$switch_module::$Switch::new(params, info))
                    })*
                    $($(Self::$Host(params) if params.runs_at_switches() => {
                        AnySwitchScheme::$Leaf(switch::$host_module::$Leaf::new(params, info))
                    })?)*
                    $(Self::$Host(_))|* | $(Self::$Reference(_))|* | Self::Python(_) => {
                        AnySwitchScheme::Ecmp(switch::ecmp::Ecmp::new(&Default::default(), info))
                    }
                }
            }

            /// The scheme at one host.
            pub fn host_scheme(&self, info: &HostInfo<'_>) -> AnyHostScheme {
                match self {
                    $(Self::$Host(params) if !params.runs_at_switches() => {
                        AnyHostScheme::$Host(host::$host_module::$Host::new(params, info))
                    })*
                    $(Self::$Reference(params) => AnyHostScheme::$Reference(reference::$reference_module::$Reference::new(params, info)),)*
                    _ => AnyHostScheme::None,
                }
            }

            /// The optional calls that it wants at switches.
            pub fn switch_hooks(&self) -> SwitchHooks {
                match self {
                    $(Self::$Switch(params) => switch::$switch_module::$Switch::hooks(params),)*
                    $($(Self::$Host(params) if params.runs_at_switches() => {
                        switch::$host_module::$Leaf::hooks(params)
                    })?)*
                    _ => SwitchHooks::default(),
                }
            }

            /// The optional calls that it wants at hosts.
            pub fn host_hooks(&self) -> HostHooks {
                match self {
                    $(Self::$Host(params) if !params.runs_at_switches() => {
                        host::$host_module::$Host::hooks(params)
                    })*
                    $(Self::$Reference(params) => reference::$reference_module::$Reference::hooks(params),)*
                    _ => HostHooks::default(),
                }
            }
        }

        /// Every scheme, in the order of the registry; references last.
        pub fn schemes() -> &'static [SchemeInfo] {
            static ALL: std::sync::LazyLock<Vec<SchemeInfo>> = std::sync::LazyLock::new(|| vec![
                $(SchemeInfo {
                    name: spec::scheme_name!($switch_module $($switch_name)?),
                    title: $switch_title,
                    source: $switch_source,
                    place: "switch",
                    order: Order::$switch_order,
                    parameters: schemars::schema_for!(switch::$switch_module::Params).to_value(),
                },)*
                $(SchemeInfo {
                    name: stringify!($host_module),
                    title: $host_title,
                    source: $host_source,
                    place: "host",
                    order: Order::$host_order,
                    parameters: schemars::schema_for!(host::$host_module::Params).to_value(),
                },)*
                $(SchemeInfo {
                    name: stringify!($reference_module),
                    title: $reference_title,
                    source: $reference_source,
                    place: "reference",
                    order: Order::$reference_order,
                    parameters: schemars::schema_for!(reference::$reference_module::Params).to_value(),
                },)*
            ]);
            &ALL
        }
    };
}

pub(super) use {scheme_name, scheme_spec};
