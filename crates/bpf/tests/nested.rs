//! Arrays of maps, on both engines.

use crate::support::{BOTH, Recorder};
use fairground_bpf::{Env, FuncRef, Image, InstanceConfig, Object, TargetTypes, Trap};

fn object() -> Object {
    Object::parse("nested.bpf.o", &crate::compile::compile("nested", &[])).expect("an object")
}

fn both(function: &str) -> Result<u64, Trap> {
    let [oracle, jit] = BOTH.map(|engine| {
        let image = Image::new(&object(), &Env::new(TargetTypes::new()), engine).expect("it links");
        let index = image.function(function).expect("the function is there");
        let mut instance = image.instantiate(&InstanceConfig::default()).expect("memory");
        instance.call_function(FuncRef(index), [0; 5], &mut Recorder::default())
    });
    assert_eq!(oracle, jit, "interpreter and JIT differ");
    jit
}

#[test]
fn a_map_is_found_in_a_map_and_used() {
    assert_eq!(both("through"), Ok(30 * 10_000 + 31 * 100 + 10));
}

#[test]
fn an_empty_element_and_one_beyond_the_end_are_null() {
    assert_eq!(both("absent"), Ok(1));
}

#[test]
fn a_program_cannot_replace_a_map() {
    let trap = both("replace").expect_err("a trap").to_string();
    assert!(trap.contains("`queues`"), "{trap}");
}

#[test]
fn its_type_has_the_kernels_name() {
    let map = object().maps().into_iter().find(|map| map.name == "queues").expect("it is there");
    assert_eq!((map.kind.as_str(), map.max_entries), ("array_of_maps", 3));
    assert_eq!(object().lacks(&Env::<Recorder>::new(TargetTypes::new())), []);
}
