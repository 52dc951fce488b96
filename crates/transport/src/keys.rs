//! Parameters that several transports share, written once.

/// Defines a parameter struct from the keys of its own and those that it shares with its kin, whose values a type
/// `Shared` in scope holds.
macro_rules! define {
    (
        $(#[$attr:meta])* $vis:vis $name:ident
        { $($(#[$own_doc:meta])* $own:ident: $own_type:ty = $own_default:expr,)* }
        { $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)* }
    ) => {
        $(#[$attr])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
