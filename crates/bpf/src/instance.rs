//! A running copy of an image: its own memory, maps and globals.

use std::fmt;
use std::sync::Arc;

use crate::config::{InstanceConfig, InstanceError, MAX_CPUS, NullLoads};
use crate::env::{FuncRef, Host, MAX_PRICES};
use crate::exec;
use crate::fold::{Frozen, frozen_ranges};
use crate::image::{Executable, Image};
use crate::jit;
use crate::layout::MapStorage;
use crate::maps::Maps;
use crate::memory::{Memory, NULL_BYTES};
use crate::object::Global;
use crate::program::Program;
use crate::region::{Access, PAGE, Region};
use crate::state::State;
use crate::trap::Trap;
use crate::vm::{ARGS, Context, MAX_ARGS, STACK_LOW, STACK_TOP, Vm};

/// A running copy of an [`Image`]. Instances share only code.
pub struct Instance<H> {
    image: Arc<Image<H>>,
    /// `None` before the first call.
    executable: Option<Arc<Executable>>,
    state: Box<State>,
    /// The control block, in the region of `state.memory`.
    vm: *mut Vm,
    insns: u64,
}

// SAFETY: the raw pointers point to what this value owns (the region, the state, the image) and are used only through
// it; `Vm::host` is valid during a call only.
unsafe impl<H> Send for Instance<H> {}

impl<H> fmt::Debug for Instance<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("image", &self.image)
            .field("config", &self.state.config)
            .field("insns", &self.insns)
            .finish()
    }
}

impl<H: Host> Image<H> {
    /// Creates an instance: its own memory, and maps with their initial content.
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

impl<H: Host> Instance<H> {
    fn new(image: Arc<Image<H>>, config: &InstanceConfig) -> Result<Self, InstanceError> {
        let cpus = config.cpus;
        if cpus == 0 || cpus > MAX_CPUS {
            return Err(InstanceError::Cpus { cpus });
        }
        let program = Arc::clone(&image.program);
        let heap =
            program.layout.heap_start(cpus).ok_or(InstanceError::Full { bytes: u64::MAX })?;
        let memory = Memory::new(Region::reserve().map_err(InstanceError::Map)?, heap);
        if config.null_loads == NullLoads::ReadZero {
            memory.commit(0, NULL_BYTES, Access::Read)?;
        }
        memory.commit(STACK_LOW, STACK_TOP - STACK_LOW, Access::ReadWrite)?;
        memory.commit(ARGS, PAGE, Access::ReadWrite)?;
        commit_maps(&program, &memory, cpus)?;
        let maps = Maps::new(&program.linked, &program.layout, &memory, config)?;
        let vm = memory.vm().cast::<Vm>();
        let mut state = Box::new(State::new(program, memory, maps, *config));
        // SAFETY: the control block is committed, page-aligned, zero (valid for every field), and larger than `Vm`.
        let block = unsafe { &mut *vm };
        block.state = &raw mut *state;
        block.image = Arc::as_ptr(&image).cast();
        block.invoke = Some(exec::invoke::<H>);
        block.task_views = state.maps.task_views();
        Ok(Instance { image, executable: None, state, vm, insns: 0 })
    }

    /// Compiles the program for the constants that were set: read-only data does not change from now on.
    #[cold]
    fn freeze(&mut self) -> Result<(), Trap> {
        let memory = &self.state.memory;
        let sections = frozen_ranges(&self.state.program.layout)
            .map(|(addr, bytes)| Ok((addr, memory.read_vec(addr, bytes)?)));
        let constants = match self.state.config.remove_dead_code {
            true => Some(Frozen::new(sections.collect::<Result<_, Trap>>()?)),
            false => None,
        };
        let executable = self.image.executable(constants).map_err(Trap::host)?;
        // SAFETY: the control block lives as long as the instance; no program runs now.
        let block = unsafe { &mut *self.vm };
        block.executable = Arc::as_ptr(&executable);
        if executable.code.is_none() {
            let functions = executable.program.functions.iter();
            self.state.executed = functions.map(|function| vec![0; function.ops.len()]).collect();
        }
        let code = executable.code.as_ref();
        (block.code_low, block.code_high) = code.map_or((0, 0), |code| code.range());
        self.executable = Some(executable);
        Ok(())
    }

    /// The values that inlined helpers read. Set them before a call.
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
            let to = self.state.memory.guest().add(ARGS as usize).cast::<u64>();
            for (index, arg) in args.iter().enumerate() {
                // Volatile: otherwise the compiler calls memcpy for one to three words, which takes 3 % of a run.
                to.add(index).write_volatile(*arg);
            }
        }
        self.run(function, &[ARGS, 0, 0, 0, 0], host)
    }

    /// Calls a function with r1…r5, such as the callback of a timer.
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

    #[inline(always)]
    fn run(&mut self, function: usize, args: &[u64; 5], host: &mut H) -> Result<u64, Trap> {
        if function >= self.state.program.functions.len() {
            return Err(Trap::host(format!("the object has no function {function}")));
        }
        if self.executable.is_none() {
            self.freeze()?;
        }
        // SAFETY: the control block lives as long as the instance; nothing else refers to it now.
        let block = unsafe { &mut *self.vm };
        if block.context.cpu >= self.state.config.cpus {
            let cpus = self.state.config.cpus;
            return Err(Trap::host(format!("CPU {} of {cpus}", block.context.cpu)));
        }
        let fuel = self.state.config.fuel_per_call.min(i64::MAX as u64) as i64;
        block.fuel = fuel;
        block.sp = STACK_TOP;
        block.host = (&raw mut *host).cast();
        // SAFETY: `vm` is this instance's control block, its host is set, the function exists.
        let result =
            jit::catching(self.vm, || unsafe { exec::invoke::<H>(self.vm, function, args) });
        // SAFETY: as above; the call is over.
        self.insns += (fuel - unsafe { (*self.vm).fuel }) as u64;
        if result.is_err() {
            self.state.release_locks();
        }
        result
    }

    /// BPF instructions executed since creation, calls and jumps included. Both engines count the same, also in a call
    /// that ended in a trap: up to the instruction that trapped, which counts.
    #[inline]
    pub fn insns(&self) -> u64 {
        self.insns
    }

    /// Divisions and remainders among [`Instance::insns`]: they take a processor tens of cycles. Both engines count
    /// the same.
    #[inline]
    pub fn divisions(&self) -> u64 {
        // SAFETY: the control block lives as long as the instance.
        unsafe { (*self.vm).divisions }
    }

    /// How often each instruction of a function was executed, by its slot. Only the interpreter counts that; empty
    /// under the JIT and before the first call.
    pub fn executed(&self, function: usize) -> &[u64] {
        self.state.executed.get(function).map_or(&[], |counts| &counts[..])
    }

    /// Sets the price of each kind of call ([`crate::Env::prices`]), in the host's unit. All are 0 initially.
    pub fn set_prices(&mut self, prices: [u32; MAX_PRICES]) {
        // SAFETY: the control block lives as long as the instance; no program runs now.
        unsafe { (*self.vm).prices = prices };
    }

    /// The sum of the prices of all calls since the last [`Instance::take_spent`].
    #[inline]
    pub fn spent(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (*self.vm).spent }
    }

    /// As [`Instance::spent`], and resets it to 0. Both engines count the same.
    #[inline]
    pub fn take_spent(&mut self) -> u64 {
        // SAFETY: as above.
        unsafe { std::mem::take(&mut (*self.vm).spent) }
    }

    /// CPUs: the number of values in per-CPU maps.
    pub fn cpus(&self) -> u32 {
        self.state.config.cpus
    }

    /// Guest memory.
    #[inline]
    pub fn memory(&self) -> &Memory {
        &self.state.memory
    }

    /// The image of this instance.
    pub fn image(&self) -> &Arc<Image<H>> {
        &self.image
    }

    /// Allocates zeroed guest memory for the host: [`Memory::alloc`].
    ///
    /// # Errors
    /// The region is full, or the kernel grants no memory.
    pub fn alloc(&self, bytes: u64, align: u64) -> Result<u64, InstanceError> {
        self.state.memory.alloc(bytes, align)
    }

    /// Allocates the slab of `task_struct`s: `capacity` of them, `stride` bytes apart. Task storage finds a task's
    /// values by its index in the slab. Returns the guest address of index 0.
    ///
    /// # Errors
    /// A second slab, more tasks than configured, or no memory.
    pub fn task_slab(&mut self, stride: u64, capacity: u32) -> Result<u64, InstanceError> {
        let limit = self.state.config.task_capacity;
        // SAFETY: the control block lives as long as the instance; no program runs now.
        let block = unsafe { &mut *self.vm };
        let bytes = stride.checked_mul(u64::from(capacity)).filter(|&bytes| bytes < 1 << 32);
        let (Some(bytes), 0, true) = (bytes, block.slab_bytes, stride > 0 && capacity <= limit)
        else {
            return Err(InstanceError::Slab { stride, capacity, limit });
        };
        let base = self.state.memory.area(bytes)?;
        block.slab_base = base;
        block.slab_bytes = bytes;
        block.slab_stride = stride;
        block.slab_inverse = (1u64 << 32).div_ceil(stride);
        Ok(base)
    }

    /// Prefetches the first `bytes` bytes of the task at index `task` of the slab, and its values in task storage.
    /// Does not change any result.
    #[inline]
    pub fn prefetch_task(&self, task: usize, bytes: u64) {
        let state = &*self.state;
        // SAFETY: the control block lives as long as the instance; no program runs now.
        let (base, stride) = unsafe { ((*self.vm).slab_base, (*self.vm).slab_stride) };
        state.memory.prefetch(base.wrapping_add(task as u64 * stride), bytes);
        state.maps.prefetch_task(&state.memory, task);
    }

    /// The guest address of the value of the task at `addr` in the task-storage map named `map`; `None` if there is
    /// no value or no such map.
    pub fn task_storage(&self, map: &str, addr: u64) -> Option<u64> {
        let map = self.image.map(map)?;
        // SAFETY: the control block lives as long as the instance; no program runs now.
        let task = unsafe { (*self.vm).task_number(addr) }?;
        self.state.maps.task_value(map, task)
    }

    /// Deletes the values of the task at `addr` from all task-storage maps, with what they own, as when a task exits.
    pub fn task_storage_free(&mut self, host: &mut H, addr: u64) {
        // SAFETY: the control block lives as long as the instance; no program runs now.
        if let Some(task) = unsafe { (*self.vm).task_number(addr) } {
            let state = &mut *self.state;
            state.maps.task_storage_free(&state.memory, task);
            state.drop_references(|memory, pointer| host.release(memory, pointer));
        }
    }

    /// Deletes the values of the cgroup at `addr` from all cgroup-storage maps, with what they own.
    pub fn cgroup_storage_free(&mut self, host: &mut H, addr: u64) {
        let state = &mut *self.state;
        state.maps.cgroup_storage_free(&state.memory, addr);
        state.drop_references(|memory, pointer| host.release(memory, pointer));
    }

    /// The bytes of a global variable.
    ///
    /// # Errors
    /// The image has no such global.
    pub fn global(&self, global: &Global) -> Result<Vec<u8>, Trap> {
        let addr = self.global_address(global)?;
        self.state.memory.read_vec(addr, global.size as usize)
    }

    /// Sets a global variable between calls; a read-only one (`const volatile`) before the first call, which freezes
    /// it.
    ///
    /// # Errors
    /// The image has no such global, `bytes` has another size, or the global is frozen.
    pub fn set_global(&mut self, global: &Global, bytes: &[u8]) -> Result<(), Trap> {
        if bytes.len() as u64 != global.size {
            return Err(Trap::host(format!(
                "global `{}` has {} bytes, not {}",
                global.name,
                global.size,
                bytes.len()
            )));
        }
        self.change_global(global, 0, bytes.len(), |old| old.copy_from_slice(bytes))
    }

    /// Changes `bytes` bytes of a global variable from `offset` on, as [`Instance::set_global`] does the whole.
    ///
    /// # Errors
    /// The image has no such global, it has fewer bytes, or it is frozen.
    pub fn change_global(
        &mut self,
        global: &Global,
        offset: u64,
        bytes: usize,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<(), Trap> {
        let addr = self.global_address(global)?;
        if offset.checked_add(bytes as u64).is_none_or(|end| end > global.size) {
            return Err(Trap::host(format!("a change exceeds the global `{}`", global.name)));
        }
        let memory = &self.state.memory;
        let mut content = memory.read_vec(addr + offset, bytes)?;
        change(&mut content);
        if self.executable.is_some() {
            return memory.write(addr + offset, &content);
        }
        memory.write_read_only(addr + offset, &content)
    }

    /// The guest address of a global variable.
    ///
    /// # Errors
    /// The image has no such global.
    pub fn global_address(&self, global: &Global) -> Result<u64, Trap> {
        let end = global.offset.checked_add(global.size);
        let layout = &self.state.program.layout;
        let fits = end.is_some_and(|end| layout.data_address(global.map, end).is_ok());
        let addr = layout.data_address(global.map, global.offset);
        addr.ok()
            .filter(|_| fits)
            .ok_or_else(|| Trap::host(format!("this object has no global `{}`", global.name)))
    }

    /// The maps.
    pub fn maps(&mut self) -> MapsRef<'_> {
        MapsRef { maps: &mut self.state.maps, memory: &self.state.memory }
    }
}

/// The host's access to an instance's maps.
#[derive(Debug)]
pub struct MapsRef<'a> {
    maps: &'a mut Maps,
    memory: &'a Memory,
}

impl MapsRef<'_> {
    /// The guest address of the value of `key` in map `map`; in a per-CPU map, the value of CPU `cpu`.
    ///
    /// # Errors
    /// The map has keys of another size, or is of a type without lookups.
    pub fn lookup(&mut self, map: usize, key: &[u8], cpu: u32) -> Result<Option<u64>, Trap> {
        self.maps.lookup_bytes(self.memory, map, key, cpu)
    }

    /// As [`MapsRef::lookup`], but adds an element of zeros to a hash table that lacks the key. `None`: the array has
    /// no such element, or the hash table is full.
    ///
    /// # Errors
    /// As [`MapsRef::lookup`].
    pub fn entry(&mut self, map: usize, key: &[u8], cpu: u32) -> Result<Option<u64>, Trap> {
        self.maps.entry_bytes(self.memory, map, key, cpu)
    }

    /// Takes the records of ring buffers and perf events since the last call, oldest first: the map's index and the
    /// bytes.
    pub fn take_records(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.maps.take_records()
    }
}

static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];

/// Commits the memory of the maps of fixed size and writes their initial content.
fn commit_maps(program: &Program, memory: &Memory, cpus: u32) -> Result<(), InstanceError> {
    let layout = &program.layout;
    for (map, storage) in program.linked.maps.iter().zip(&layout.maps) {
        let MapStorage::Fixed { addr, stride, entries, read_only } = *storage else { continue };
        let bytes = (stride * entries).next_multiple_of(PAGE);
        if bytes == 0 {
            continue;
        }
        memory.commit(addr, bytes, Access::ReadWrite)?;
        // Committed memory is zero, and a page that nothing is written to costs nothing.
        let pages = (addr..).step_by(PAGE as usize).zip(map.initial.chunks(PAGE as usize));
        for (addr, page) in pages.filter(|(_, page)| **page != ZEROS[..page.len()]) {
            memory.write(addr, page).map_err(|_| InstanceError::Full { bytes })?;
        }
        if read_only {
            memory.commit(addr, bytes, Access::Read)?;
        }
    }
    let blocks = (layout.cpu_stride * u64::from(cpus)).next_multiple_of(PAGE);
    if blocks > 0 {
        memory.commit(layout.cpu_base, blocks, Access::ReadWrite)?;
    }
    Ok(())
}
