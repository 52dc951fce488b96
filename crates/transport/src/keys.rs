//! Parameters that several transports share, written once.

/// Defines a parameter struct from the keys of its own and those that it shares with its kin, whose
/// values a type `Shared` in scope holds.
macro_rules! define {
    (
        $(#[$attr:meta])* $vis:vis $name:ident, with defaults by $profile:ident
        { $($(#[$own_doc:meta])* $own:ident: $own_type:ty = $own_default:expr,)* }
        { $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)* }
    ) => {
        $crate::keys::define! {
            @struct [Debug, Clone, PartialEq, Serialize, JsonSchema] $(#[$attr])* $vis $name
            { $($(#[$own_doc])* $own: $own_type = $own_default,)* }
            { $($(#[$doc])* $field: $type = $default,)* }
        }

        /// A key that is not given is as its profile has it.
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(default, deny_unknown_fields)]
                struct Given {
                    $($own: Option<$own_type>,)*
                    $($field: Option<$type>,)*
                }
                impl Default for Given {
                    fn default() -> Self {
                        Self { $($own: None,)* $($field: None,)* }
                    }
                }
                let given = Given::deserialize(deserializer)?;
                let usual = Self::of(given.$profile.unwrap_or_default());
                Ok(Self {
                    $($own: given.$own.unwrap_or(usual.$own),)*
                    $($field: given.$field.unwrap_or(usual.$field),)*
                })
            }
        }
    };
    (
        $(#[$attr:meta])* $vis:vis $name:ident
        { $($own:tt)* }
        { $($shared:tt)* }
    ) => {
        $crate::keys::define! {
            @struct [Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema] $(#[$attr])* $vis $name
            { $($own)* }
            { $($shared)* }
        }
    };
    (
        @struct [$($derive:ident),*] $(#[$attr:meta])* $vis:vis $name:ident
        { $($(#[$own_doc:meta])* $own:ident: $own_type:ty = $own_default:expr,)* }
        { $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)* }
    ) => {
        $(#[$attr])*
        #[derive($($derive),*)]
        #[serde(default, deny_unknown_fields)]
        $vis struct $name {
            $($(#[$own_doc])* pub $own: $own_type,)*
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($own: $own_default,)* $($field: $default,)* }
            }
        }

        impl From<&$name> for Shared {
            fn from(config: &$name) -> Self {
                Self { $($field: config.$field,)* }
            }
        }
    };
}

pub(crate) use define;
