//! A transport that stands in place of a spec's: what it keeps, what it is told apart by, and what
//! is reported.

#[allow(dead_code)]
use crate::common::{SMALL, small};
use weft_lab::{Prepared, Resolved, SpecSource, Variant};

fn message(source: &SpecSource) -> String {
    let Err(error) = Prepared::new(source) else { panic!("a mistake was not noticed: {source:?}") };
    error.to_string()
}

/// A spec whose transport has keys, and the run of another transport in its place.
fn in_place(transport: &str, variant: &str, changes: &[(&str, &str)]) -> Resolved {
    let source = SpecSource::from_text(format!("{SMALL}\n[transport]\n{transport}\n"));
    let source = changes.iter().fold(source, |source, (key, value)| source.with(key, value));
    Resolved::new(&source.with_variant(Variant::parse(variant).expect("a variant"))).expect("a spec")
}

fn at(resolved: &Resolved, key: &str) -> Option<(String, &'static str)> {
    let origins = resolved.origins().expect("origins");
    let found = origins.into_iter().find(|origin| origin.key == key)?;
    Some((found.value.as_str().map_or_else(|| found.value.to_string(), str::to_owned), found.origin))
}

#[test]
fn a_transport_in_the_place_of_another_keeps_every_key_that_it_has_whoever_wrote_it() {
    let tcp = "name = 'tcp'\nmin_rto = '200ms'\ninitial_rto = '200ms'";
    let found = in_place(tcp, "dctcp", &[("transport.mss", "9000B")]);
    assert_eq!(at(&found, "transport.min_rto"), Some(("200ms".to_owned(), "spec file")));
    assert_eq!(at(&found, "transport.mss"), Some(("9KB".to_owned(), "--set")));
    assert_eq!(found.notes, Vec::<String>::new());
    // Whichever way the transport is named, it is the same run.
    for (key, value) in [("transport", "dctcp"), ("transport.name", "dctcp"), ("transport.name", "\"dctcp\"")]
    {
        let source = SpecSource::from_text(format!("{SMALL}\n[transport]\n{tcp}\n"));
        let named = Resolved::new(&source.with("transport.mss", "9000B").with(key, value)).unwrap();
        assert_eq!(named.hash, found.hash, "{key} = {value}");
    }
    // Nor does it matter what is named in between, or that the variant says so itself.
    let detour = in_place(tcp, "dctcp", &[("transport", "roce"), ("transport.mss", "9000B")]);
    assert_eq!(detour.hash, found.hash);
    let own = in_place(tcp, "dctcp:min_rto=1ms", &[]);
    assert_eq!(at(&own, "transport.min_rto"), Some(("1ms".to_owned(), "--schemes")));
}

#[test]
fn a_key_that_a_transport_does_not_have_is_reported_and_a_key_of_none_is_a_mistake() {
    let roce = "name = 'roce'\nwindow = '64KiB'\nmtu = '4KiB'\ng = 0.5";
    let irn = in_place(roce, "irn", &[("transport.timeout", "1ms")]);
    assert_eq!(at(&irn, "transport.mtu"), Some(("4KiB".to_owned(), "spec file")));
    assert_eq!(
        irn.notes,
        ["irn has no keys `window`, `timeout`; ignored", "`g` defines roce; irn keeps its own"]
    );
    // Of a spec that names neither, each transport takes what it has.
    let text = |variant: &str| {
        let source = small(&[("transport.timeout", "1ms")]);
        source.with_variant(Variant::parse(variant).unwrap())
    };
    let roce = Resolved::new(&text("roce")).unwrap();
    assert_eq!(at(&roce, "transport.timeout"), Some(("1ms".to_owned(), "--set")));
    assert_eq!(Resolved::new(&text("irn")).unwrap().notes, ["irn has no key `timeout`; ignored"]);
    let said = message(&small(&[("transport.timeout", "1ms")]));
    assert!(said.starts_with("--set: transport.timeout is not a key of dctcp; roce has it"), "{said}");
    let swept =
        SpecSource::from_text(format!("{SMALL}\n[transport]\nname = ['roce', 'irn']\ntimeout = '1ms'\n"));
    let of_list = Resolved::new(&swept.with("transport.name", "irn")).unwrap();
    assert_eq!(of_list.notes, ["irn has no key `timeout`; ignored"]);
    let of_table = Resolved::new(&small(&[("transport.timeout", "1ms"), ("transport", "irn")])).unwrap();
    assert_eq!(of_table.notes, of_list.notes);
    let said = message(&small(&[("transport.timeout", "1ms"), ("transport.name", "irn")]));
    assert!(said.starts_with("--set: transport.timeout is not a key of irn; roce has it"), "{said}");
    let typo = small(&[("transport.timeut", "1ms")]).with_variant(Variant::parse("roce").unwrap());
    let said = message(&typo);
    assert!(said.starts_with("--set: transport.timeut is not a key"), "{said}");
}

#[test]
fn a_mistake_in_a_table_that_is_replaced_is_a_mistake_all_the_same() {
    for (table, variant, expected) in [
        ("[transport]\nname = 'tcp'\nmin_rtoo = '1s'", "dctcp", "spec:15: transport.min_rtoo is not a key"),
        ("[transport]\nname = 'tcp'\nmtu = '1KiB'", "roce", "spec:15: transport.mtu is not a key of tcp"),
        ("[transport]\nname = 'tpc'", "roce", "spec:14: transport.name = \"tpc\" is not known"),
        ("[scheme]\nname = 'letflow'\ngapp = '1us'", "ecmp", "spec:15: scheme.gapp is not a key"),
        ("[scheme]\nname = 'letflw'", "ecmp", "spec:14: scheme.name = \"letflw\" is not known"),
    ] {
        let source = SpecSource::from_text(format!("{SMALL}\n{table}\n"));
        let said = message(&source.with_variant(Variant::parse(variant).unwrap()));
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn the_conditions_of_a_transport_say_what_the_variant_asks_for() {
    let condition = |resolved: &Resolved, quantity: &str| {
        let found = resolved.conditions.iter().find(|one| one.quantity == quantity).unwrap();
        (found.value.clone(), found.asked)
    };
    let roce = in_place("name = 'roce'", "roce", &[]);
    let irn = in_place("name = 'roce'", "irn:mtu=4KiB", &[]);
    assert_eq!(condition(&roce, "packet size"), ("1KiB".to_owned(), false));
    assert_eq!(condition(&irn, "packet size"), ("4KiB".to_owned(), true));
    assert_eq!(condition(&irn, "minimum timeout"), ("100us".to_owned(), false));
    let uec = in_place("name = 'roce'", "uec", &[]);
    assert_eq!(condition(&uec, "initial window"), ("the largest window".to_owned(), false));
}

#[test]
fn a_key_that_two_load_balancers_have_is_for_the_one_that_the_spec_names() {
    let text = format!("{SMALL}\n[scheme]\nname = 'letflow'\ngap = '9us'\n");
    let notes = |variant: &str| {
        let source = SpecSource::from_text(text.clone());
        Resolved::new(&source.with_variant(Variant::parse(variant).unwrap())).unwrap().notes
    };
    let said = "`gap` is for letflow; conga keeps its own unless it is named, as in conga:gap=9us";
    assert_eq!(notes("conga"), [said]);
    for quiet in ["conga:gap=9us", "letflow", "ecmp"] {
        assert_eq!(notes(quiet), Vec::<String>::new(), "{quiet}");
    }
}
