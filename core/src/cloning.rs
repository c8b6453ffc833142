//! [`clone_fields!`](crate::clone_fields): `Clone` for a state whose lists keep their buffers.

/// Implements `Clone`, including `clone_from`, for a struct field by field, so that each list keeps its buffer.
///
/// A client clones its authority into the prediction after each wrong guess, with `clone_from`. A derived `Clone` does
/// not define `clone_from`: the default creates a new value and allocates each list of the state again. `Vec`,
/// `String`, [`Table`](crate::Table), [`Schedule`](crate::Schedule) and structs that use this macro keep their buffers.
///
/// All fields must be named, in any order: the compiler reports a missing one. Types with few or no lists do not need
/// the macro, and neither do list elements without heap memory.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use twinstep_core::{PlayerId, Table, clone_fields};
///
/// #[derive(Serialize, Deserialize)]
/// struct Field {
///     pawns: Table<PlayerId, u32>,
///     shots: Vec<u64>,
/// }
/// clone_fields!(Field { pawns, shots });
///
/// let mut prediction = Field { pawns: Table::new(), shots: Vec::with_capacity(64) };
/// let authority = Field { pawns: Table::new(), shots: vec![1, 2, 3] };
/// prediction.clone_from(&authority); // no allocation
/// assert_eq!((&prediction.shots, prediction.shots.capacity()), (&vec![1, 2, 3], 64));
/// ```
///
/// `first` runs a closure before the fields are cloned, for example to reserve the maximum size of a list, so that it
/// does not grow during play.
///
/// ```
/// # use twinstep_core::clone_fields;
/// struct Swarm {
///     bees: Vec<u32>,
/// }
/// clone_fields!(Swarm { bees } first |to, from| to.bees.reserve(2 * from.bees.len()));
///
/// let mut copy = Swarm { bees: Vec::new() };
/// copy.clone_from(&Swarm { bees: vec![7; 100] });
/// assert!(copy.bees.len() == 100 && copy.bees.capacity() >= 200);
/// ```
///
/// ```compile_fail
/// # use twinstep_core::clone_fields;
/// struct Swarm { bees: Vec<u32>, honey: u32 }
/// clone_fields!(Swarm { bees }); // missing field `honey`
/// ```
#[macro_export]
macro_rules! clone_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        $crate::clone_fields!($type { $($field),* } first |_to, _from| {});
    };
    ($type:ident { $($field:ident),* $(,)? } first $before:expr) => {
        impl ::core::clone::Clone for $type {
            fn clone(&self) -> Self {
                $type { $($field: ::core::clone::Clone::clone(&self.$field)),* }
            }

            fn clone_from(&mut self, other: &Self) {
                let first: fn(&mut Self, &Self) = $before;
                first(self, other);
                $(::core::clone::Clone::clone_from(&mut self.$field, &other.$field);)*
            }
        }
    };
}
