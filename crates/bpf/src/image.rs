//! A linked program, checked and compiled once, that any number of instances share.

use std::fmt;
use std::sync::Arc;

use crate::decode::{self, Op};
use crate::env::{Callable, Env, Host, HostFn};
use crate::error::{Fault, LoadCause};
use crate::helpers::{self, HelperFn};
use crate::instance::{Instance, InstanceConfig, InstanceError};
use crate::jit::{self, Code};
use crate::layout::Layout;
use crate::linked::{Callee, Fixup, Linked};
use crate::{LoadError, Object, Symbols};

/// Ticks per second where the environment has no `CONFIG_HZ`, as the kernel's default on x86-64.
const DEFAULT_HZ: u64 = 250;

/// What runs the instructions. Both count the same instructions and leave the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Engine {
    /// Machine code, made by Cranelift. Where there is none for this processor, the interpreter runs instead
    /// (see [`Image::engine`]).
    #[default]
    Jit,
    /// Operation by operation: slow, simple, the oracle for the other.
    Interpreter,
}

/// Calls to the host, resolved.
#[derive(Debug)]
pub(crate) enum HostCall<H> {
    /// Supplied by the environment.
    Env(HostFn<H>),
    /// Part of this crate.
    Builtin(HelperFn<H>),
}

/// A function, decoded.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
}

/// A linked and compiled object.
pub struct Image<H> {
    pub(crate) linked: Linked,
    pub(crate) layout: Layout,
    pub(crate) programs: Vec<Program>,
    /// By index of [`Linked::kfuncs`].
    pub(crate) kfuncs: Vec<HostCall<H>>,
    /// By helper number; sorted.
    pub(crate) helpers: Vec<(u32, HostCall<H>)>,
    /// By index of [`Linked::kfuncs`]: the place of its price.
    pub(crate) kfunc_prices: Vec<Option<u8>>,
    /// By helper number: the place of its price.
    pub(crate) helper_prices: Vec<(u32, u8)>,
    /// Ticks per second, for `bpf_jiffies64`.
    pub(crate) hz: u64,
    pub(crate) code: Option<Code>,
}

impl<H> fmt::Debug for Image<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("functions", &self.linked.functions.len())
            .field("maps", &self.linked.maps.len())
            .field("engine", &self.engine())
            .finish()
    }
}

impl<H: Host> Image<H> {
    /// Links `object` against `env`, checks every instruction, compiles.
    ///
    /// # Errors
    /// Whatever [`crate::link`] reports; malformed instructions; a helper that neither this crate nor `env` has; maps that do
    /// not fit into the region.
    pub fn new(object: &Object, env: &Env<H>, engine: Engine) -> Result<Arc<Image<H>>, LoadError> {
        let mut kfuncs: Vec<&str> = env.kfuncs.iter().map(|(name, _)| *name).collect();
        kfuncs.extend(helpers::builtin_kfuncs());
        let kconfig: Vec<_> =
            env.kconfig.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let ksyms: Vec<_> = env.ksyms.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let symbols = Symbols { kfuncs: &kfuncs, kconfig: &kconfig, ksyms: &ksyms };
        let linked = crate::link(object, &env.types, &symbols)?;
        Image::from_linked(object.name(), linked, env, engine)
            .map_err(|error| error.with_source(object))
    }

    /// Checks and compiles what a loader linked. `name` is the file that errors speak of.
    ///
    /// # Errors
    /// As [`Image::new`], linking apart.
    pub fn from_linked(
        name: &str,
        linked: Linked,
        env: &Env<H>,
        engine: Engine,
    ) -> Result<Arc<Image<H>>, LoadError> {
        build(linked, env, engine).map(Arc::new).map_err(|fault| fault.in_file(name))
    }

    /// Makes an instance: its own memory, maps with their first content, nothing executed.
    ///
    /// # Errors
    /// The kernel grants no more memory or mappings, or the configuration does not fit into the region.
    pub fn instantiate(
        self: &Arc<Self>,
        config: &InstanceConfig,
    ) -> Result<Instance<H>, InstanceError> {
        Instance::new(Arc::clone(self), config)
    }
}

impl<H> Image<H> {
    /// The engine in use: the interpreter if it was asked for or if this processor has no JIT.
    pub fn engine(&self) -> Engine {
        if self.code.is_some() { Engine::Jit } else { Engine::Interpreter }
    }

    /// What is linked.
    pub fn linked(&self) -> &Linked {
        &self.linked
    }

    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.linked.functions.iter().position(|function| function.name == name)
    }

    /// The map of that name.
    pub fn map(&self, name: &str) -> Option<usize> {
        self.linked.maps.iter().position(|map| map.name == name)
    }

    pub(crate) fn poison(&self, function: usize, insn: usize) -> String {
        match self.linked.functions[function].fixups.get(&insn) {
            Some(Fixup::Poison(text)) => text.clone(),
            _ => "no reason was given".to_owned(),
        }
    }

    /// The place of a callee's price, if it has one.
    pub(crate) fn price(&self, callee: Callee) -> Option<u8> {
        match callee {
            Callee::Function(_) => None,
            Callee::Kfunc(index) => self.kfunc_prices.get(index).copied().flatten(),
            Callee::Helper(number) => {
                let priced = self.helper_prices.iter().find(|(known, _)| *known == number);
                priced.map(|(_, place)| *place)
            }
        }
    }

    pub(crate) fn helper(&self, number: u32) -> Option<HostCall<H>>
    where
        H: Host,
    {
        let at = self.helpers.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(self.helpers[at].1)
    }
}

// Function pointers copy whatever `H` is; a derive would ask for `H: Copy`.
impl<H> Copy for HostCall<H> {}
impl<H> Clone for HostCall<H> {
    fn clone(&self) -> Self {
        *self
    }
}

fn build<H: Host>(linked: Linked, env: &Env<H>, engine: Engine) -> Result<Image<H>, Fault> {
    let layout = Layout::new(&linked)?;
    let mut programs = Vec::with_capacity(linked.functions.len());
    for function in &linked.functions {
        let ops = decode::decode(&linked, function, &layout)?;
        programs.push(Program { name: function.name.clone(), ops });
    }
    let kfuncs = resolve_kfuncs(&linked, env)?;
    let helpers = resolve_helpers(&linked, env)?;
    let hz = env.kconfig.iter().find(|(name, _)| name == "CONFIG_HZ");
    let hz = hz.map_or(DEFAULT_HZ, |(_, hz)| *hz);
    let (kfunc_prices, helper_prices) = resolve_prices(&linked, env);
    let mut image = Image {
        linked,
        layout,
        programs,
        kfuncs,
        helpers,
        kfunc_prices,
        helper_prices,
        hz,
        code: None,
    };
    if engine == Engine::Jit && jit::SUPPORTED {
        image.code = Some(jit::compile(&image).map_err(LoadCause::Engine)?);
    }
    Ok(image)
}

fn resolve_kfuncs<H: Host>(linked: &Linked, env: &Env<H>) -> Result<Vec<HostCall<H>>, Fault> {
    let resolve = |name: &String| {
        let supplied = env.kfuncs.iter().find(|(known, _)| known == name);
        let call = match supplied {
            Some((_, function)) => Some(HostCall::Env(*function)),
            None => helpers::builtin_kfunc(name).map(HostCall::Builtin),
        };
        call.ok_or_else(|| {
            Fault::from(LoadCause::UnknownKfunc { name: name.clone(), nearest: None })
        })
    };
    linked.kfuncs.iter().map(resolve).collect()
}

/// The places of prices: by kfunc of the object, and by helper.
fn resolve_prices<H>(linked: &Linked, env: &Env<H>) -> (Vec<Option<u8>>, Vec<(u32, u8)>) {
    let of_kfunc = |name: &String| {
        let is_it = |what: &Callable| matches!(what, Callable::Kfunc(known) if known == name);
        env.prices.iter().find(|(what, _)| is_it(what)).map(|(_, place)| *place)
    };
    let of_helper = |(what, place): &(Callable, u8)| match what {
        Callable::Helper(number) => Some((*number, *place)),
        Callable::Kfunc(_) => None,
    };
    let of_helpers = env.prices.iter().filter_map(of_helper);
    (linked.kfuncs.iter().map(of_kfunc).collect(), of_helpers.collect())
}

fn resolve_helpers<H: Host>(
    linked: &Linked,
    env: &Env<H>,
) -> Result<Vec<(u32, HostCall<H>)>, Fault> {
    let mut found: Vec<(u32, HostCall<H>)> = Vec::new();
    for function in &linked.functions {
        for (slot, fixup) in &function.fixups {
            let Fixup::Call(Callee::Helper(number)) = fixup else { continue };
            let Err(at) = found.binary_search_by_key(number, |(number, _)| *number) else {
                continue;
            };
            let supplied = env.helpers.iter().find(|(known, _)| known == number);
            let call = match supplied {
                Some((_, function)) => Some(HostCall::Env(*function)),
                None => helpers::builtin_helper(*number).map(HostCall::Builtin),
            };
            let call = call.ok_or_else(|| {
                let name = helpers::name(*number).unwrap_or("of an unknown name");
                let cause = LoadCause::Unsupported(format!("BPF helper {number} ({name})"));
                decode::fault(function, *slot, cause)
            })?;
            found.insert(at, (*number, call));
        }
    }
    Ok(found)
}
