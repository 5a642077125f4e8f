//! The form of the messages.

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

/// A pipe of 65,536 bytes holds 640 messages of 100 bytes: a page holds 40, and no part of another.
#[test]
fn a_pipe_is_full_of_messages_before_it_is_full_of_bytes() {
    let written = |messages: u32| {
        format!(
            "format = 1\nname = \"fills\"\nduration = \"1s\"\n\
             [[pipe]]\nname = \"data\"\n[[queue]]\nname = \"begin\"\n\
             [[task]]\nname = \"writer\"\nprogram = [\n\
             {{ loop = [{{ write = {{ pipe = \"data\", bytes = 100 }} }}], times = {messages} }}, \
             {{ send = \"begin\" }}]\n\
             [[task]]\nname = \"reader\"\nprogram = [\n\
             {{ receive = \"begin\" }}, {{ loop = [{{ read = {{ pipe = \"data\", bytes = 100 }} \
             }}], times = {messages} }}]\n"
        )
    };
    assert!(parse("fits.toml", &written(640)).is_ok());
    let message = message("fills.toml", &written(641));
    assert!(message.contains("writer") && message.contains("reader"), "{message}");
}

#[test]
fn locks() {
    insta::assert_snapshot!(message("locks.toml", include_str!("bad/locks.toml")));
    insta::assert_snapshot!(message("held.toml", include_str!("bad/held.toml")));
    insta::assert_snapshot!(message("order.toml", include_str!("bad/order.toml")));
}

#[test]
fn policies() {
    insta::assert_snapshot!(message("policy.toml", include_str!("bad/policy.toml")));
}

#[test]
fn control_groups() {
    insta::assert_snapshot!(message("cgroups.toml", include_str!("bad/cgroups.toml")));
}
