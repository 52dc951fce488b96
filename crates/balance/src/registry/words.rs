//! Parameters that are a time, or a word for one that is not written as a number.

/// Defines an enum of words and of a time, with its text form in specs: serde and JSON Schema.
macro_rules! time_or_words {
    (
        $(#[$doc:meta])* $Type:ident, $allowed:literal,
        { $($(#[$word_doc:meta])* $Word:ident = $word:literal,)+ }
        $(#[$time_doc:meta])* $Time:ident
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Type {
            $($(#[$word_doc])* $Word,)+
            $(#[$time_doc])* $Time(weft_units::Span),
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Word => f.write_str($word),)+
                    Self::$Time(time) => time.fmt(f),
                }
            }
        }

        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $Type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($allowed)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$Type, E> {
                        match text.trim() {
                            $($word => Ok($Type::$Word),)+
                            other => other.parse().map($Type::$Time).map_err(|error: weft_units::QuantityError| {
                                let said = format!("{error}; allowed is {}", $allowed);
                                E::invalid_value(serde::de::Unexpected::Other(&said), &$allowed)
                            }),
                        }
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl schemars::JsonSchema for $Type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Type).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let time = generator.subschema_for::<weft_units::Span>();
                schemars::json_schema!({ "anyOf": [$({ "const": $word },)+ time] })
            }
        }
    };
}
pub(crate) use time_or_words;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weft_units::Span;

    time_or_words! {
        /// How long.
        Long, "a time (\"5us\"), \"short\" or \"long\"",
        {
            /// Short.
            Short = "short",
            /// Long.
            Endless = "long",
        }
        /// So long.
        For
    }

    fn read(text: &str) -> Result<Long, String> {
        let table: Result<BTreeMap<String, Long>, _> =
            serde_json::from_value(serde_json::json!({ "long": text }));
        table.map(|table| table["long"]).map_err(|error| error.to_string())
    }

    #[test]
    fn words_and_times_survive_their_text_form() {
        for (text, value) in
            [("short", Long::Short), ("long", Long::Endless), ("5us", Long::For(Span::from_us(5)))]
        {
            assert_eq!((read(text), value.to_string()), (Ok(value), text.to_owned()));
        }
    }

    #[test]
    fn anything_else_is_answered_with_what_is_allowed() {
        for text in ["longer", "5", "", "-1us"] {
            let message = read(text).expect_err(text);
            assert!(message.contains("a time (\"5us\"), \"short\" or \"long\""), "{text}: {message}");
        }
    }
}
