//! The macro that makes everything that follows from the table of events: see [`crate::EventKind`].
//!
//! A field has a role, which is a variant of [`FieldValue`](crate::event::FieldValue), and its place in the words of a
//! packed event: `op` (24 bits beside the kind), `a`, `b`, `c` (32 bits each), or `bc` (64 bits).

/// A task's field changed by a function, any other as it is.
macro_rules! map_task {
    (Task, $field:expr, $map:expr) => {
        $map($field)
    };
    ($role:ident, $field:expr, $map:expr) => {
        $field
    };
}

/// The name of a tracepoint's field: that of the event's field unless the table has another one. A task has several
/// fields, of which it is the prefix.
macro_rules! source {
    (Task, task) => {
        ""
    };
    (Task, $field:ident) => {
        concat!(stringify!($field), "_")
    };
    ($role:ident, $field:ident) => {
        stringify!($field)
    };
    ($role:ident, $field:ident, $source:literal) => {
        $source
    };
}

/// Notes a label's field.
macro_rules! note_label {
    (Label, $field:expr, $label:ident) => {
        $label = Some($field)
    };
    ($role:ident, $field:expr, $label:ident) => {
        let _ = $field;
    };
}

/// The field's word put into its place.
macro_rules! put {
    ($words:ident, op, $word:expr) => {
        $words.op = $word as u32
    };
    ($words:ident, a, $word:expr) => {
        $words.a = $word as u32
    };
    ($words:ident, b, $word:expr) => {
        $words.b = $word as u32
    };
    ($words:ident, c, $word:expr) => {
        $words.c = $word as u32
    };
    ($words:ident, bc, $word:expr) => {{
        let word = $word;
        ($words.b, $words.c) = (word as u32, (word >> 32) as u32);
    }};
}

/// The word at a place.
macro_rules! get {
    ($words:ident, op) => {
        u64::from($words.op)
    };
    ($words:ident, a) => {
        u64::from($words.a)
    };
    ($words:ident, b) => {
        u64::from($words.b)
    };
    ($words:ident, c) => {
        u64::from($words.c)
    };
    ($words:ident, bc) => {
        u64::from($words.b) | u64::from($words.c) << 32
    };
}

/// Makes [`crate::EventKind`] and its functions of the table.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $kind:ident $name:literal $(mark $mark:literal)? $(tracepoint $tracepoint:literal)? {
            $($field:ident: $role:ident($type:ty) @ $place:ident $(= $source:literal)?),* $(,)?
        }
    )*) => {
        /// What happened. Task and CPU numbers are those of the trace.
        #[allow(missing_docs)] // The fields are named by the variant's own sentence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventKind<T = TaskId> {
            $($(#[$doc])* $kind { $($field: $type),* },)*
        }

        /// The kinds without their fields, by the number that a packed event has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
        #[repr(u32)]
        pub(crate) enum Tag {
            $($kind,)*
        }

        impl Tag {
            /// The kind of a mark of our own.
            pub(crate) fn of_mark(name: &str) -> Option<Self> {
                $($(if name == $mark {
                    return Some(Self::$kind);
                })?)*
                None
            }

            /// The kind of a tracepoint whose fields are taken over as they are.
            pub(crate) fn of_tracepoint(name: &str) -> Option<Self> {
                $($(if name == $tracepoint {
                    return Some(Self::$kind);
                })?)*
                None
            }

            /// The names of the tracepoint's fields, those of a task without `comm`, `pid` and `prio`; and their roles.
            pub(crate) fn sources(self) -> &'static [(&'static str, Role)] {
                match self {
                    $(Self::$kind => &[$((source!($role, $field $(, $source)?), Role::$role)),*],)*
                }
            }
        }

        /// The numbers of [`Tag`], for patterns.
        #[allow(non_upper_case_globals)]
        mod tag {
            $(pub(super) const $kind: u32 = super::Tag::$kind as u32;)*
        }

        impl<T> EventKind<T> {
            /// The name of the kind in tables: `switch`, `rt_prio`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind { .. } => $name,)*
                }
            }

            /// The word after `fairground:` in a mark, for kinds that the kernel has no tracepoint for.
            pub(crate) fn mark(&self) -> Option<&'static str> {
                match self {
                    $($(Self::$kind { .. } => Some($mark),)?)*
                    _ => None,
                }
            }

            /// The tracepoint whose fields the event has.
            pub(crate) fn tracepoint(&self) -> Option<&'static str> {
                match self {
                    $($(Self::$kind { .. } => Some($tracepoint),)?)*
                    _ => None,
                }
            }

            /// The same event with other tasks; the function is called in the order of the table.
            #[inline(always)]
            #[allow(unused_mut, unused_variables)]
            pub(crate) fn map_tasks<U>(self, mut map: impl FnMut(T) -> U) -> EventKind<U> {
                match self {
                    $(Self::$kind { $($field),* } => EventKind::$kind {
                        $($field: map_task!($role, $field, map)),*
                    },)*
                }
            }

            /// The text that the event refers to, if it does.
            #[inline]
            pub(crate) fn label_mut(&mut self) -> Option<&mut Label> {
                let mut label = None;
                match self {
                    $(Self::$kind { $($field),* } => {
                        $(note_label!($role, $field, label);)*
                    })*
                }
                label
            }

            /// The event of a kind. `read` gives the value of each field by its name, the name of the tracepoint's
            /// field and the role, in the order of the table; `None` where it has no value for one.
            #[inline]
            pub(crate) fn of_fields(
                tag: Tag,
                mut read: impl FnMut(&'static str, &'static str, Role) -> Option<FieldValue<T>>,
            ) -> Option<Self> {
                Some(match tag {
                    $(Tag::$kind => Self::$kind {
                        $($field: {
                            let source = source!($role, $field $(, $source)?);
                            match read(stringify!($field), source, Role::$role)? {
                                FieldValue::$role(value) => value,
                                _ => return None,
                            }
                        }),*
                    },)*
                })
            }

            /// Calls a function with the name of each field, that of the tracepoint's field, and the value, in the order of
            /// the table.
            #[inline(always)]
            pub(crate) fn each_field(
                &self,
                mut call: impl FnMut(&'static str, &'static str, FieldValue<T>),
            )
            where
                T: Copy,
            {
                match *self {
                    $(Self::$kind { $($field),* } => {
                        $(call(
                            stringify!($field),
                            source!($role, $field $(, $source)?),
                            FieldValue::$role($field),
                        );)*
                    })*
                }
            }

            /// As the words of a packed event.
            #[inline(always)]
            pub(crate) fn words(self) -> Words
            where
                T: Word,
            {
                let mut words = Words::default();
                match self {
                    $(Self::$kind { $($field),* } => {
                        words.tag = tag::$kind;
                        $(put!(words, $place, $field.word());)*
                    })*
                }
                words
            }

            /// From the words of a packed event.
            #[inline(always)]
            pub(crate) fn of_words(words: Words) -> Self
            where
                T: Word,
            {
                match words.tag {
                    $(tag::$kind => Self::$kind {
                        $($field: Word::of_word(get!(words, $place))),*
                    },)*
                    _ => Self::Lost { count: 0 },
                }
            }
        }
    };
}
