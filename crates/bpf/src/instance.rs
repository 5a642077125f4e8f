//! A running copy of an image: its own memory, maps and globals.

use std::ffi::c_void;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::Global;
use crate::env::{FuncRef, Host, MAX_PRICES};
use crate::exec;
use crate::graph::Graph;
use crate::helpers::Timers;
use crate::image::Image;
use crate::jit;
use crate::layout::Place;
use crate::maps::Maps;
use crate::memory::{Memory, NULL_BYTES};
use crate::region::{Access, PAGE, Region};
use crate::trap::Trap;
use crate::vm::{ARGS, Context, MAX_ARGS, STACK_LOW, STACK_TOP, Vm};

/// CPUs at most: what bounds per-CPU memory.
pub const MAX_CPUS: u32 = 8192;

/// What a load through NULL does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NullLoads {
    /// It ends the call with a trap: the program has a bug.
    #[default]
    Trap,
    /// It reads zero, as the kernel's JIT makes it do for pointers that the verifier lets through unchecked.
    ReadZero,
}

/// The size and the limits of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceConfig {
    /// CPUs, 1…[`MAX_CPUS`]: the number of values in per-CPU maps.
    pub cpus: u32,
    /// Instructions that one call may execute before it ends in [`crate::TrapKind::OutOfFuel`].
    pub fuel_per_call: u64,
    /// Tasks that exist at once, at most: the number of values in task-storage maps.
    pub task_capacity: u32,
    /// Cgroups that exist at once, at most: the number of values in cgroup-storage maps.
    pub cgroup_capacity: u32,
    /// What a load through NULL does.
    pub null_loads: NullLoads,
}

impl Default for InstanceConfig {
    /// One CPU, 8 million instructions per call, 4,096 tasks, 256 cgroups, traps at NULL.
    fn default() -> Self {
        InstanceConfig {
            cpus: 1,
            fuel_per_call: 8 << 20,
            task_capacity: 4096,
            cgroup_capacity: 256,
            null_loads: NullLoads::default(),
        }
    }
}

/// Why there is no instance, or no memory in it.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The kernel refused a mapping.
    #[error(
        "the kernel grants no memory for a program's region: {0} \
         (see `sysctl vm.max_map_count` and `ulimit -v` when many instances live at once)"
    )]
    Map(#[source] io::Error),
    /// The region is full.
    #[error(
        "{bytes} bytes do not fit into the program's 4 GiB region: use fewer CPUs, tasks or map entries"
    )]
    Full {
        /// What was asked for.
        bytes: u64,
    },
    /// The number of CPUs is out of range.
    #[error("{cpus} CPUs: a program runs on 1 to {MAX_CPUS}")]
    Cpus {
        /// What was asked for.
        cpus: u32,
    },
    /// An alignment that is no power of two, or above a page.
    #[error("an alignment of {align}: use a power of two up to 4096")]
    Align {
        /// What was asked for.
        align: u64,
    },
    /// A second slab, or one larger than configured.
    #[error(
        "a slab of {capacity} tasks of {stride} bytes: one slab per instance, within `task_capacity` = {limit}"
    )]
    Slab {
        /// Bytes from a task to the next.
        stride: u64,
        /// Tasks.
        capacity: u32,
        /// [`InstanceConfig::task_capacity`].
        limit: u32,
    },
}

/// What helpers reach through the control block.
pub(crate) struct Core<H> {
    pub(crate) image: Arc<Image<H>>,
    pub(crate) memory: Memory,
    pub(crate) maps: Maps,
    pub(crate) config: InstanceConfig,
    /// The trap that generated code is about to land with.
    pub(crate) pending: Option<Trap>,
    /// `bpf_spin_lock`s held.
    pub(crate) locks: u32,
    pub(crate) timers: Timers,
    pub(crate) graph: Graph,
}

/// A running copy of an [`Image`]. Instances share nothing but code.
pub struct Instance<H> {
    core: Box<Core<H>>,
    vm: *mut Vm,
    insns: u64,
}

// SAFETY: everything that the raw pointers lead to (the region, the core) is owned by this value and used only through it;
// `Vm::host` is set for the duration of a call alone.
unsafe impl<H> Send for Instance<H> {}

impl<H> fmt::Debug for Instance<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("image", &self.core.image)
            .field("config", &self.core.config)
            .field("insns", &self.insns)
            .finish()
    }
}

impl<H: Host> Instance<H> {
    pub(crate) fn new(
        image: Arc<Image<H>>,
        config: &InstanceConfig,
    ) -> Result<Self, InstanceError> {
        let cpus = config.cpus;
        if cpus == 0 || cpus > MAX_CPUS {
            return Err(InstanceError::Cpus { cpus });
        }
        let heap = image.layout.heap_start(cpus).ok_or(InstanceError::Full { bytes: u64::MAX })?;
        let memory = Memory::new(Region::reserve().map_err(InstanceError::Map)?, heap);
        if config.null_loads == NullLoads::ReadZero {
            memory.commit(0, NULL_BYTES, Access::Read)?;
        }
        memory.commit(STACK_LOW, STACK_TOP - STACK_LOW, Access::ReadWrite)?;
        memory.commit(ARGS, PAGE, Access::ReadWrite)?;
        commit_maps(&image, &memory, cpus)?;
        let maps = Maps::new(&image.linked, &image.layout, &memory, config)?;
        let vm = memory.vm().cast::<Vm>();
        let core = Core {
            image,
            memory,
            maps,
            config: *config,
            pending: None,
            locks: 0,
            timers: Timers::default(),
            graph: Graph::default(),
        };
        let mut core = Box::new(core);
        // SAFETY: the control block is committed, page-aligned, zero (valid for every field), and larger than `Vm`.
        let block = unsafe { &mut *vm };
        block.core = (&raw mut *core).cast::<c_void>();
        block.task_views = core.maps.task_views();
        let code = core.image.code.as_ref();
        (block.code_low, block.code_high) = code.map_or((0, 0), |code| code.range());
        Ok(Instance { core, vm, insns: 0 })
    }

    /// What inlined helpers read; set it before a call.
    #[inline]
    pub fn context(&mut self) -> &mut Context {
        // SAFETY: the control block lives as long as the instance, and no program runs while `self` is borrowed here.
        unsafe { &mut (*self.vm).context }
    }

    /// Calls a function by the struct_ops convention: `args` become an array of `u64` in guest memory, r1 points to it.
    ///
    /// # Errors
    /// A trap; the instance's memory stays as the program left it.
    #[inline]
    pub fn call(&mut self, function: usize, args: &[u64], host: &mut H) -> Result<u64, Trap> {
        if args.len() > MAX_ARGS {
            return Err(Trap::host(format!("{} arguments: at most {MAX_ARGS}", args.len())));
        }
        // SAFETY: the page of arguments is committed at creation and holds MAX_ARGS words.
        unsafe {
            let to = self.core.memory.guest().add(ARGS as usize).cast::<u64>();
            for (place, arg) in args.iter().enumerate() {
                // Volatile, lest one to three words become a call of memcpy: 3 % of a run.
                to.add(place).write_volatile(*arg);
            }
        }
        self.run(function, &[ARGS, 0, 0, 0, 0], host)
    }

    /// Calls a function with r1…r5: callbacks of timers.
    ///
    /// # Errors
    /// As [`Instance::call`].
    pub fn call_function(
        &mut self,
        function: FuncRef,
        args: [u64; 5],
        host: &mut H,
    ) -> Result<u64, Trap> {
        self.run(function.0, &args, host)
    }

    #[inline]
    fn run(&mut self, function: usize, args: &[u64; 5], host: &mut H) -> Result<u64, Trap> {
        if function >= self.core.image.programs.len() {
            return Err(Trap::host(format!("the object has no function {function}")));
        }
        // SAFETY: the control block lives as long as the instance; nothing else refers to it now.
        let block = unsafe { &mut *self.vm };
        if block.context.cpu >= self.core.config.cpus {
            let cpus = self.core.config.cpus;
            return Err(Trap::host(format!("CPU {} of {cpus}", block.context.cpu)));
        }
        let fuel = self.core.config.fuel_per_call.min(i64::MAX as u64) as i64;
        block.fuel = fuel;
        block.sp = STACK_TOP;
        block.host = (&raw mut *host).cast::<c_void>();
        // SAFETY: `vm` is this instance's control block, its host is set, the function exists.
        let result =
            jit::catching(self.vm, || unsafe { exec::invoke::<H>(self.vm, function, args) });
        // SAFETY: as above; the call is over.
        self.insns += (fuel - unsafe { (*self.vm).fuel }) as u64;
        if result.is_err() {
            self.core.locks = 0;
            self.core.graph.held.clear();
        }
        result
    }

    /// BPF instructions executed since creation, calls and jumps included. Both engines count the same; a call that ended in
    /// a trap counts up to its last call or loop turn at least.
    #[inline]
    pub fn insns(&self) -> u64 {
        self.insns
    }

    /// Divisions and remainders among [`Instance::insns`]: the instructions that cost a processor tens of cycles. Both engines
    /// count the same.
    #[inline]
    pub fn divisions(&self) -> u64 {
        // SAFETY: the control block lives as long as the instance.
        unsafe { (*self.vm).divisions }
    }

    /// Sets what each priced kind of call ([`crate::Env::prices`]) costs from now on, in the host's unit; nothing at first.
    pub fn set_prices(&mut self, prices: [u32; MAX_PRICES]) {
        // SAFETY: the control block lives as long as the instance; no program runs now.
        unsafe { (*self.vm).prices = prices };
    }

    /// The prices of all calls since the last [`Instance::take_spent`].
    #[inline]
    pub fn spent(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (*self.vm).spent }
    }

    /// The prices of all calls since the last time that this was called. Both engines count the same.
    #[inline]
    pub fn take_spent(&mut self) -> u64 {
        // SAFETY: as above.
        unsafe { std::mem::take(&mut (*self.vm).spent) }
    }

    /// CPUs: the number of values in per-CPU maps.
    pub fn cpus(&self) -> u32 {
        self.core.config.cpus
    }

    /// Guest memory.
    #[inline]
    pub fn memory(&self) -> &Memory {
        &self.core.memory
    }

    /// What is being run.
    pub fn image(&self) -> &Arc<Image<H>> {
        &self.core.image
    }

    /// Takes zeroed memory for the host: [`Memory::alloc`].
    ///
    /// # Errors
    /// The region is full, or the kernel grants no memory.
    pub fn alloc(&self, bytes: u64, align: u64) -> Result<u64, InstanceError> {
        self.core.memory.alloc(bytes, align)
    }

    /// Reserves the slab in which all `task_struct`s lie: `capacity` of them, `stride` bytes apart. Task storage finds a
    /// task's values by its number in the slab. Returns the guest address of number 0.
    ///
    /// # Errors
    /// A second slab, more tasks than configured, no memory.
    pub fn task_slab(&mut self, stride: u64, capacity: u32) -> Result<u64, InstanceError> {
        let limit = self.core.config.task_capacity;
        // SAFETY: the control block lives as long as the instance; no program runs now.
        let block = unsafe { &mut *self.vm };
        let bytes = stride.checked_mul(u64::from(capacity)).filter(|&bytes| bytes < 1 << 32);
        let (Some(bytes), 0, true) = (bytes, block.slab_bytes, stride > 0 && capacity <= limit)
        else {
            return Err(InstanceError::Slab { stride, capacity, limit });
        };
        let base = self.core.memory.area(bytes)?;
        block.slab_base = base;
        block.slab_bytes = bytes;
        block.slab_stride = stride;
        block.slab_inverse = (1u64 << 32).div_ceil(stride);
        Ok(base)
    }

    /// Asks for the cache lines of task number `task` of the slab, the first `bytes` of it, and of what task storage holds for it.
    /// Nothing waits for them, and no result depends on them.
    #[inline]
    pub fn prefetch_task(&self, task: usize, bytes: u64) {
        let core = &*self.core;
        // SAFETY: the control block lives as long as the instance; no program runs now.
        let (base, stride) = unsafe { ((*self.vm).slab_base, (*self.vm).slab_stride) };
        core.memory.prefetch(base.wrapping_add(task as u64 * stride), bytes);
        core.maps.prefetch_task(&core.memory, task);
    }

    /// The guest address of what task-storage map `map` (by name) holds for the task at `addr`; `None` if it holds nothing, or
    /// there is no such map.
    pub fn task_storage(&self, map: &str, addr: u64) -> Option<u64> {
        let map = self.core.image.map(map)?;
        // SAFETY: the control block lives as long as the instance; no program runs now.
        let task = unsafe { (*self.vm).task_number(addr) }?;
        self.core.maps.task_value(map, task)
    }

    /// Forgets what task storage holds for the task at `addr`: it exits.
    pub fn task_storage_free(&mut self, addr: u64) {
        // SAFETY: the control block lives as long as the instance; no program runs now.
        if let Some(task) = unsafe { (*self.vm).task_number(addr) } {
            self.core.maps.task_storage_free(task);
        }
    }

    /// Forgets what cgroup storage holds for the cgroup at `addr`.
    pub fn cgroup_storage_free(&mut self, addr: u64) {
        let core = &mut *self.core;
        core.maps.cgroup_storage_free(&core.memory, addr);
    }

    /// A global's bytes.
    ///
    /// # Errors
    /// `global` is not one of this image's.
    pub fn global(&self, global: &Global) -> Result<Vec<u8>, Trap> {
        let addr = self.global_address(global)?;
        self.core.memory.read_vec(addr, global.size as usize)
    }

    /// Sets a global, also a read-only one (`const volatile`), before or between calls.
    ///
    /// # Errors
    /// `global` is not one of this image's, or `bytes` has another size.
    pub fn set_global(&mut self, global: &Global, bytes: &[u8]) -> Result<(), Trap> {
        let addr = self.global_address(global)?;
        if bytes.len() as u64 != global.size {
            return Err(Trap::host(format!(
                "global `{}` has {} bytes, not {}",
                global.name,
                global.size,
                bytes.len()
            )));
        }
        self.core.memory.write_read_only(addr, bytes)
    }

    /// The guest address of a global.
    ///
    /// # Errors
    /// `global` is not one of this image's.
    pub fn global_address(&self, global: &Global) -> Result<u64, Trap> {
        let end = global.offset.checked_add(global.size);
        let layout = &self.core.image.layout;
        let fits = end.is_some_and(|end| layout.data_address(global.map, end).is_ok());
        let addr = layout.data_address(global.map, global.offset);
        addr.ok()
            .filter(|_| fits)
            .ok_or_else(|| Trap::host(format!("global `{}` is not of this object", global.name)))
    }

    /// The host's side of the maps.
    pub fn maps(&mut self) -> MapsRef<'_> {
        MapsRef { core_maps: &mut self.core.maps, memory: &self.core.memory }
    }
}

/// The host's view of an instance's maps.
#[derive(Debug)]
pub struct MapsRef<'a> {
    core_maps: &'a mut Maps,
    memory: &'a Memory,
}

impl MapsRef<'_> {
    /// The guest address of the value of `key` in map `map` (of CPU `cpu`, where the map is per CPU).
    ///
    /// # Errors
    /// The map has no keys of that size, or is of a kind without lookups.
    pub fn lookup(&mut self, map: usize, key: &[u8], cpu: u32) -> Result<Option<u64>, Trap> {
        self.core_maps.lookup_bytes(self.memory, map, key, cpu)
    }

    /// As [`MapsRef::lookup`]; a hash table gets an element of zeros where it has none. `None`: the array has no such element, or
    /// the table is full.
    ///
    /// # Errors
    /// As [`MapsRef::lookup`].
    pub fn entry(&mut self, map: usize, key: &[u8], cpu: u32) -> Result<Option<u64>, Trap> {
        self.core_maps.entry_bytes(self.memory, map, key, cpu)
    }

    /// Takes the records that the program sent through ring buffers and perf events since the last call, oldest first:
    /// the map's index and the bytes.
    pub fn take_records(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.core_maps.take_records()
    }
}

fn commit_maps<H>(image: &Image<H>, memory: &Memory, cpus: u32) -> Result<(), InstanceError> {
    for (map, place) in image.linked.maps.iter().zip(&image.layout.places) {
        let Place::Fixed { addr, slot, slots, read_only } = *place else { continue };
        let bytes = (slot * slots).next_multiple_of(PAGE);
        if bytes == 0 {
            continue;
        }
        memory.commit(addr, bytes, Access::ReadWrite)?;
        memory.write(addr, &map.initial).map_err(|_| InstanceError::Full { bytes })?;
        if read_only {
            memory.commit(addr, bytes, Access::Read)?;
        }
    }
    let blocks = (image.layout.cpu_stride * u64::from(cpus)).next_multiple_of(PAGE);
    if blocks > 0 {
        memory.commit(image.layout.cpu_base, blocks, Access::ReadWrite)?;
    }
    Ok(())
}
