//! Alternatives of public ports: chance by weights, explicit routes, and acknowledgements by ECMP.

use weft_packet::Route;

use super::super::header::PathId;
use super::*;
use crate::acknowledgements::Acknowledgements;

#[test]
fn in_ecn_mode_flowlets_may_be_drawn_by_weights_that_marks_cut() {
    let params = Params { choice: Choice::AtRandom, cut: 0.5, ..Params::default() };
    let mut world = World::discovered(&params, 4);
    let cut = world.scheme.rules.destinations[0].paths.list()[0].clone();
    let told = with(turned(data(1), false), |told| {
        Header { marked: Some(cut.id), ..Header::default() }.write(told);
    });
    world.receive(&mut Flow::default(), told);
    // Half of 1 goes to the three others: 1/2 and 7/6.
    let cut = world.path_of(cut.entropy);
    let mut counts = [0u64; 4];
    for _ in 0..12_000 {
        let sent = world.send(&mut Flow::default(), data(1));
        counts[world.path_of(sent.entropy)] += 1;
    }
    let mut weights = [7; 4];
    weights[cut] = 3;
    let chi = chi_square(&counts, &weights);
    assert!(chi < CHI_SQUARE_3, "chi-square {chi}: {counts:?}");
}

#[test]
fn explicit_routes_are_known_from_the_first_packet_and_nothing_is_traced() {
    let params = Params { steers: Steers::Routes, ..Params::default() };
    let mut world = World::new(&params, 4);
    let sent: Vec<_> = (0..8).map(|_| world.send(&mut Flow::default(), data(77))).collect();
    assert_eq!(
        sent.iter().map(|sent| sent.route).collect::<Vec<_>>(),
        [0, 1, 2, 3, 0, 1, 2, 3].map(Route::label)
    );
    assert!(sent.iter().all(|sent| sent.entropy == 77 && Header::take(&mut sent.clone()).path.is_some()));
    assert_eq!((world.count("discoveries"), world.count("traces"), world.count("paths")), (0, 0, 4));
    world.run_timers(2_000_000);
    world.send(&mut Flow::default(), data(77));
    assert_eq!((world.host.messages.len(), world.known()), (0, 4));
    assert!(Clove::hooks(&params).pinned && !Clove::hooks(&params).traces);
    // At most as many as are to be kept; and where there is one, there is nothing to steer.
    for (paths, routes, known) in [(3, 4, 3), (16, 1, 0)] {
        let mut world = World::new(&Params { paths, ..params.clone() }, routes);
        world.send(&mut Flow::default(), data(1));
        assert_eq!(world.known(), known);
    }
}

#[test]
fn acknowledgements_by_ecmp_keep_their_entropy_and_tell_of_marks() {
    let params = Params { acknowledgements: Acknowledgements::Ecmp, ..Params::default() };
    let mut world = World::discovered(&params, 4);
    let mut flow = Flow::default();
    let mut come = data(1);
    Header { path: Some(PathId::new(2, 1)), guest_ect: true, ..Header::default() }.write(&mut come);
    world.receive(&mut flow, turned(come, true));
    let mut ack = world.send(&mut flow, with(packet(77), |ack| ack.kind = Kind::Ack));
    assert_eq!((ack.entropy, ack.route), (77, Route::ANY));
    assert_eq!(Header::take(&mut ack), Header { marked: Some(PathId::new(2, 1)), ..Header::default() });
    assert_ne!(world.send(&mut flow, data(77)).entropy, 77, "data is steered");
    assert_eq!(world.count("flowlets"), 2, "that of the discovery, and the data's");
}
