//! This machine as a view takes it: a recording that is read while it is being made.

use fairground_analysis::Options;
use fairground_kernel::job::RecordingJob;
use fairground_kernel::run::kernel_info;
use fairground_kernel::tracefs::Following;
use fairground_run::Failure;
use fairground_top::{About, Follower, Problem, Source, View};
use fairground_trace::Joiner;

/// Time between two parts of the recording, ns: reading each of them costs something of its own.
const PART_NS: u64 = 200_000_000;
/// Of so many tasks, most of them ended, the view begins anew: it keeps something of each.
const TASKS_MAX: usize = 1 << 16;

/// This machine.
#[derive(Debug)]
pub(super) struct Host {
    following: Following,
    joiner: Joiner,
    follower: Follower,
    interval_ns: u64,
    /// How far the stream is, ns since its beginning.
    now_ns: u64,
    /// When the last part was taken, ns of the recording's clock.
    taken_ns: u64,
    about: About,
    begun_anew: u64,
}

impl Host {
    /// Starts to record.
    pub(super) fn start(kib_per_cpu: u32, interval_ns: u64) -> Result<Host, Failure> {
        let job = RecordingJob { kib_per_cpu, ..RecordingJob::default() };
        let following = Following::start(&job).map_err(Failure::new)?;
        let taken_ns = following.now_ns().map_err(Failure::new)?;
        let joiner = Joiner::new(following.cpus(), taken_ns);
        let follower = Follower::new(joiner.trace(), &Options::default(), interval_ns);
        let info = kernel_info();
        let about = About {
            what: "this machine".to_owned(),
            scheduler: "its kernel".to_owned(),
            made: format!("Linux {}, {} CPUs", info.release, info.cpus),
            is_real: true,
            length_ns: None,
        };
        Ok(Host {
            following,
            joiner,
            follower,
            interval_ns,
            now_ns: 0,
            taken_ns,
            about,
            begun_anew: 0,
        })
    }

    fn begin_anew(&mut self) {
        self.joiner = Joiner::new(self.following.cpus(), self.taken_ns);
        self.follower = Follower::new(self.joiner.trace(), &Options::default(), self.interval_ns);
        self.begun_anew += 1;
    }

    fn take(&mut self) -> Result<(), Problem> {
        let part = self.following.take().map_err(|e| e.to_string())?;
        let trace = fairground_trace::read("this machine", part.bytes.as_slice())
            .map_err(|e| e.to_string())?;
        self.now_ns = self.joiner.add(&trace, part.complete_ns);
        self.follower.take(self.joiner.trace(), self.now_ns);
        self.joiner.forget_events();
        if self.joiner.trace().tasks().len() > TASKS_MAX {
            self.begin_anew();
        }
        Ok(())
    }
}

impl Source for Host {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn advance(&mut self, _: u64) -> Result<(), Problem> {
        let now_ns = self.following.now_ns().map_err(|e| e.to_string())?;
        if now_ns.saturating_sub(self.taken_ns) >= PART_NS {
            self.taken_ns = now_ns;
            self.take()?;
        }
        Ok(())
    }

    fn view(&self) -> View {
        let mut view = self.follower.view(self.joiner.trace(), self.now_ns);
        let loss = &self.joiner.trace().loss;
        if loss.lost_events > 0 {
            view.notes.push(format!(
                "{} events were lost: a larger --buffer may keep them",
                loss.lost_events
            ));
        }
        if self.begun_anew > 0 {
            view.notes.push(format!("the view began anew after {TASKS_MAX} tasks"));
        }
        view
    }
}
