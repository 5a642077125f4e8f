//! What calls cost beyond their instruction: the sum is the same on both engines.

use crate::support::{BOTH, Recorder, code, env, exit};
use fairground_bpf::{Callable, Callee, Engine, Image, InstanceConfig, Linked, MAX_PRICES};

/// `bpf_ktime_get_ns`.
const CLOCK: u32 = 5;

/// What a kfunc of that place, called twice, and a helper of the first place, called once, are charged with.
fn spent(place: u8, price: u32, engine: Engine) -> u64 {
    let mut env = env();
    env.prices = vec![(Callable::Helper(CLOCK), 0), (Callable::Kfunc("record"), place)];
    let main = code().call(Callee::Kfunc(0)).call(Callee::Kfunc(0)).helper(CLOCK).op(exit());
    let kfuncs = vec!["record".to_owned()];
    let linked = Linked { functions: vec![main.function("main")], kfuncs, ..Linked::default() };
    let image = Image::from_linked("test", linked, &env, engine).expect("a valid program");
    let mut instance = image.instantiate(&InstanceConfig::default()).expect("memory");
    let mut prices = [0; MAX_PRICES];
    prices[0] = 1;
    prices[usize::from(place)] = price;
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
fn every_place_that_a_byte_can_name_has_its_price() {
    for engine in BOTH {
        for place in [1, 31, 32, 254, u8::MAX] {
            assert_eq!(spent(place, 1000, engine), 2001, "place {place}, {engine:?}");
        }
        assert_eq!(spent(7, u32::MAX, engine), 2 * u64::from(u32::MAX) + 1, "{engine:?}");
        assert_eq!(spent(7, 0, engine), 1, "{engine:?}");
    }
}
