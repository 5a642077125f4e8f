//! Whether a sleeping actor will be woken.

use super::actor::{Phase, WaitLink};
use super::code::Step;
use super::effect::ActorId;
use super::state::Actors;

impl Actors {
    /// Why an actor that sleeps will never be woken; `None`: no reason is known. `armed`: its timer is set.
    pub(crate) fn why_it_waits_in_vain(&self, actor: ActorId, armed: bool) -> Option<&'static str> {
        let actor = &self.actors[actor.0 as usize];
        if actor.takes_signal() {
            return Some("it sleeps, and a signal waits for it");
        }
        let frame = &actor.frames[actor.level];
        let entry = self.code.specs[actor.spec as usize].entry;
        let timed = match (frame.phase, &self.code.steps[frame.pc as usize]) {
            (Phase::Asleep, _) | (Phase::Waiting, Step::TimerWait { .. }) => true,
            // In the lead-in of the run.
            (Phase::Start, _) if frame.pc == entry => true,
            (Phase::Waiting, Step::Io(_)) => return None,
            (Phase::Waiting, Step::WaitChildren) => {
                return (actor.children == 0).then_some("it waits for children, and has none");
            }
            (Phase::Waiting, _) => false,
            _ => return Some("it sleeps, and its program does not"),
        };
        if timed {
            return (!armed).then_some("it sleeps, and its timer is not set");
        }
        (actor.wait == WaitLink::FREE).then_some("it waits for another task, and is in no list")
    }
}
