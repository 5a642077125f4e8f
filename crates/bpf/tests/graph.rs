//! Objects that a program allocates, its trees, lists and resilient spin locks, on both engines.

use crate::support::{BOTH, Recorder};
use fairground_bpf::{Engine, Env, FuncRef, Image, Instance, InstanceConfig, Object, Trap};

fn instance(engine: Engine) -> Instance<Recorder> {
    let object =
        Object::parse("graph.bpf.o", &crate::compile::compile("graph", &[])).expect("an object");
    let env = Env::new(fairground_bpf::TargetTypes::new());
    let image = Image::new(&object, &env, engine).expect("it links");
    image.instantiate(&InstanceConfig::default()).expect("memory")
}

fn call(instance: &mut Instance<Recorder>, function: &str) -> Result<u64, Trap> {
    let index = instance.image().function(function).expect("the function is there");
    instance.call_function(FuncRef(index), [0; 5], &mut Recorder::default())
}

/// The result, which both engines return with the same instruction count.
fn both(function: &str) -> Result<u64, Trap> {
    let [oracle, jit] = BOTH.map(|engine| {
        let mut instance = instance(engine);
        let result = call(&mut instance, function);
        let insns = result.is_ok().then(|| instance.insns());
        (result, insns)
    });
    assert_eq!(oracle, jit, "interpreter and JIT differ");
    jit.0
}

#[test]
fn a_tree_gives_its_nodes_by_key_and_equals_in_the_order_of_arrival() {
    for engine in BOTH {
        let mut instance = instance(engine);
        assert_eq!(call(&mut instance, "sorted"), Ok(5));
        let seen = Object::parse("graph.bpf.o", &crate::compile::compile("graph", &[]))
            .expect("an object");
        let seen = seen.global("seen").expect("a variable").clone();
        let bytes = instance.global(&seen).expect("its bytes");
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .take(5)
            .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
            .collect();
        assert_eq!(words, [13, 31, 34, 50, 52]);
    }
}

#[test]
fn a_node_is_linked_once() {
    assert_eq!(both("twice"), Ok(22), "0, then -EINVAL");
}

#[test]
fn a_list_is_pushed_and_popped_at_both_ends() {
    // 0; 1 0; 1 0 2; 3 1 0 2.
    assert_eq!(both("listed"), Ok(3102));
}

#[test]
fn a_new_object_is_zero() {
    assert_eq!(both("zeroed"), Ok(0));
}

#[test]
fn what_is_gone_cannot_be_dropped() {
    let trap = both("drop_twice").expect_err("a trap").to_string();
    assert!(trap.contains("no object at"), "{trap}");
}

#[test]
fn objects_have_a_limit() {
    assert_eq!(both("too_many"), Ok(65_536));
}

/// 180,000 objects in values that are deleted, written over or evicted, of which 65,536 may exist at a time.
#[test]
fn what_a_value_owns_goes_with_it() {
    assert_eq!(both("owned_by_values"), Ok(30_000));
}

#[test]
fn a_lock_that_is_held_is_refused() {
    assert_eq!(both("locks"), Ok(35), "-EDEADLK");
}

#[test]
fn locks_are_given_back_in_order_and_a_trap_gives_back_all() {
    for engine in BOTH {
        let mut instance = instance(engine);
        let trap = call(&mut instance, "unlock_out_of_order").expect_err("a trap").to_string();
        assert!(trap.contains("was not the last taken"), "{trap}");
        assert_eq!(call(&mut instance, "locks"), Ok(35));
    }
}
