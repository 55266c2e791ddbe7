//! What plays: asked for, auditioned, come back to, saved with a project and found again.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use ondes_engine::chain::ImpulseFile;
use ondes_ui::Slot;

use super::{Inner, Kept, Shared};
use crate::desk::setting::Setting;
use crate::library::{Found, Missing, Reference};
use crate::macros::MACROS;
use crate::state::{Saved, Slots};

impl Shared {
    /// Begins to look for a model, and plays it when it is there: on a thread of its own, since files may be slow. Of several
    /// that are asked for in short order the last one counts. With `brief` [`Shared::come_back`] leads back to what played.
    /// The thread is the caller's, who must not let this code be unloaded before it ends.
    pub fn fetch(
        self: &Arc<Self>,
        brief: bool,
        find: impl FnOnce() -> Result<Found, String> + Send + 'static,
    ) -> JoinHandle<()> {
        let ticket = self.ask();
        let shared = self.clone();
        std::thread::spawn(move || {
            let found = find();
            let mut inner = shared.inner();
            if inner.asked != ticket {
                return;
            }
            inner.reading = false;
            match found {
                Ok(found) => {
                    let now = inner.keep(shared.cabinet.file());
                    let before = inner.before.take().or(Some(now)).filter(|_| brief);
                    shared.put(&mut inner, Ok(found));
                    inner.before = before;
                }
                Err(reason) => inner.refused = Some(reason),
            }
        })
    }

    /// Says that something is being read that shall be played. Gives its number, for [`Shared::is_awaited`].
    pub fn ask(&self) -> u64 {
        let mut inner = self.inner();
        inner.asked += 1;
        (inner.reading, inner.refused) = (true, None);
        inner.asked
    }

    /// Whether nothing else was asked for since.
    #[must_use]
    pub fn is_awaited(&self, ticket: u64) -> bool {
        self.inner().asked == ticket
    }

    /// Says that what is awaited will not be played, and why if somebody is to know; what played plays on, and what played
    /// briefly ends.
    pub fn refuse(&self, ticket: u64, reason: Option<String>) {
        let mut inner = self.inner();
        if inner.asked != ticket {
            return;
        }
        inner.reading = false;
        if let Some(before) = inner.before.take() {
            self.put_back(&mut inner, before);
        }
        inner.refused = reason;
    }

    /// Ends what was begun briefly: what played before plays again.
    pub fn come_back(&self) {
        let mut inner = self.inner();
        (inner.asked, inner.reading) = (inner.asked + 1, false);
        if let Some(before) = inner.before.take() {
            self.put_back(&mut inner, before);
        }
    }

    /// Whether a model is only played briefly.
    #[must_use]
    pub fn is_brief(&self) -> bool {
        self.inner().before.is_some()
    }

    /// The selection as it is, to come back to.
    #[must_use]
    pub fn keep(&self) -> Kept {
        self.inner().keep(self.cabinet.file())
    }

    /// Plays a selection that was kept; how the window looks stays.
    pub fn recall(&self, kept: Kept) {
        let mut inner = self.inner();
        (inner.asked, inner.reading, inner.before) = (inner.asked + 1, false, None);
        self.put_back(&mut inner, kept);
    }

    fn put_back(&self, inner: &mut Inner, kept: Kept) {
        let same = match (&inner.model, &kept.model) {
            (Some(now), Some(then)) => now.content_hash() == then.content_hash(),
            _ => false,
        };
        if same {
            let turned: Vec<String> = (0..MACROS).filter_map(|index| Some(inner.bound(index)?.name.clone())).collect();
            inner.bent.extend(turned);
            inner.bent.extend(inner.saved.latents.keys().cloned());
        }
        let Saved { look, pad, running, .. } = std::mem::take(&mut inner.saved);
        (inner.saved, inner.problem, inner.refused) = (Saved { look, pad, running, ..kept.saved }, kept.problem, None);
        inner.notice = kept.notice;
        self.adopt_cabinet(inner, kept.cabinet);
        if same {
            self.send(inner.table());
        } else {
            inner.set_model(kept.model);
            self.load(inner);
        }
    }

    fn adopt(&self, found: Result<Found, Missing>) {
        let mut inner = self.inner();
        let notice = found.as_ref().ok().and_then(|(model, _)| inner.saved.model.replaced(model));
        self.put(&mut inner, found);
        inner.notice = notice;
    }

    fn put(&self, inner: &mut Inner, found: Result<Found, Missing>) {
        inner.asked += 1;
        (inner.reading, inner.refused, inner.notice, inner.before) = (false, None, None, None);
        match found {
            Ok((model, path)) => {
                let embedded = inner.saved.model.embedded.take();
                let embedded = embedded.filter(|_| inner.saved.model.is_to(&model));
                // They are another model's, unless a bundled one was known by its name alone.
                if !inner.saved.model.hash.is_empty() && !inner.saved.model.is_to(&model) {
                    inner.saved.latents.clear();
                }
                inner.saved.model = Reference { embedded, ..Reference::to(&model, path) };
                inner.problem = None;
                inner.set_model(Some(model));
            }
            Err(problem) => {
                inner.problem = Some(problem);
                inner.set_model(None);
            }
        }
        self.load(inner);
    }

    /// Looks again for a model that was missing. Gives whether it is there.
    pub fn retry(&self) -> bool {
        let reference = {
            let inner = self.inner();
            if inner.problem.is_none() {
                return true;
            }
            inner.saved.model.clone()
        };
        let found = reference.find();
        let there = found.is_ok();
        if there {
            self.adopt(found);
        }
        there
    }

    /// Takes a model that was missing from that file, if it is the one that was meant.
    pub fn locate(&self, path: PathBuf) {
        let reference = {
            let inner = self.inner();
            if inner.problem.is_none() {
                return;
            }
            Reference { path: Some(path), ..inner.saved.model.clone() }
        };
        self.adopt(reference.find());
    }

    /// The model that is not where it was, if that is so.
    #[must_use]
    pub fn missing(&self) -> Option<Missing> {
        self.inner().problem.clone()
    }

    /// What a project saves of an instance besides its parameters.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let (kept, look, pad, running) = {
            let inner = self.inner();
            // A model that is only auditioned is none of the project's.
            let before = inner.before.clone();
            let Saved { look, pad, running, .. } = &inner.saved;
            let kept = before.unwrap_or_else(|| inner.keep(self.cabinet.file()));
            (kept, *look, pad.clone(), *running)
        };
        let (compare, controllers) = (self.compare.saved(), self.controllers.all());
        let mut saved = Saved { look, pad, running, compare, controllers, ..kept.saved() };
        if let Some(Slots { other: Some(other), .. }) = &mut saved.compare
            && other.selection.model.hash == saved.model.hash
        {
            // Once is enough.
            other.selection.model.embedded = None;
        }
        saved
    }

    /// Goes to what a project has saved; the model is looked for at once, which may take its time.
    pub fn restore(&self, mut saved: Saved) {
        self.controllers.set_all(&std::mem::take(&mut saved.controllers));
        let slots = saved.compare.take().unwrap_or_default();
        let found = saved.model.find();
        let other = slots.other.map(|sound| {
            let kept = Kept::of(*sound.selection, found.as_ref().ok());
            Setting { values: sound.parameters, kept }
        });
        self.compare.restore(if slots.b_is_heard { Slot::B } else { Slot::A }, other);
        {
            let mut inner = self.inner();
            inner.saved = saved;
            self.adopt_cabinet(&mut inner, None);
        }
        self.adopt(found);
    }
}

impl Inner {
    fn keep(&self, cabinet: Option<Arc<ImpulseFile>>) -> Kept {
        let Self { saved, model, problem, notice, .. } = self;
        Kept { saved: saved.clone(), model: model.clone(), problem: problem.clone(), notice: notice.clone(), cabinet }
    }
}
