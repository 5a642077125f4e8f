//! The prices of calls: the sum is the same on both engines.

use crate::support::{BOTH, Recorder, code, env, exit};
use fairground_bpf::{Callable, Callee, Engine, Image, InstanceConfig, Linked, MAX_PRICES};

/// `bpf_ktime_get_ns`.
const CLOCK: u32 = 5;

/// The sum of the prices of a kfunc with that price index, called twice, and of a helper with index 0, called once.
fn spent(index: u8, price: u32, engine: Engine) -> u64 {
    let mut env = env();
    env.prices = vec![(Callable::Helper(CLOCK), 0), (Callable::Kfunc("record"), index)];
    let main = code().call(Callee::Kfunc(0)).call(Callee::Kfunc(0)).helper(CLOCK).op(exit());
    let kfuncs = vec!["record".to_owned()];
    let linked = Linked { functions: vec![main.function("main")], kfuncs, ..Linked::default() };
    let image = Image::from_linked("test", linked, &env, engine).expect("a valid program");
    let mut instance = image.instantiate(&InstanceConfig::default()).expect("memory");
    let mut prices = [0; MAX_PRICES];
    prices[0] = 1;
    prices[usize::from(index)] = price;
    instance.set_prices(prices);
    let args = [0; 5];
    instance.call(0, &args, &mut Recorder::default()).expect("it ends");
    let seen = instance.spent();
    let spent = instance.take_spent();
    assert_eq!(seen, spent, "to look takes nothing");
    assert_eq!((instance.spent(), instance.take_spent()), (0, 0), "what was taken is gone");
    spent
}

#[test]
fn every_index_of_a_byte_has_a_price() {
    for engine in BOTH {
        for index in [1, 31, 32, 254, u8::MAX] {
            assert_eq!(spent(index, 1000, engine), 2001, "index {index}, {engine:?}");
        }
        assert_eq!(spent(7, u32::MAX, engine), 2 * u64::from(u32::MAX) + 1, "{engine:?}");
        assert_eq!(spent(7, 0, engine), 1, "{engine:?}");
    }
}
