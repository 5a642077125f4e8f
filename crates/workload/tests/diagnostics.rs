//! What the messages look like.

use fairground_workload::parse;

fn message(name: &str, text: &str) -> String {
    parse(name, text).expect_err("the file is bad on purpose").to_string()
}

#[test]
fn keys_types_values_and_names() {
    insta::assert_snapshot!(message("keys.toml", include_str!("bad/keys.toml")));
}

#[test]
fn the_flow_of_programs() {
    insta::assert_snapshot!(message("flow.toml", include_str!("bad/flow.toml")));
}

#[test]
fn a_cyclic_wait() {
    insta::assert_snapshot!(message("cycle.toml", include_str!("bad/cycle.toml")));
}

#[test]
fn locks() {
    insta::assert_snapshot!(message("locks.toml", include_str!("bad/locks.toml")));
    insta::assert_snapshot!(message("held.toml", include_str!("bad/held.toml")));
    insta::assert_snapshot!(message("order.toml", include_str!("bad/order.toml")));
}

#[test]
fn control_groups() {
    insta::assert_snapshot!(message("cgroups.toml", include_str!("bad/cgroups.toml")));
}
