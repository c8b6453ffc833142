//! [`CStruct`] and [`c_struct!`](crate::c_struct): the structs shared across the C boundary.

/// The declaration of a struct, collected from the fields of a [`CStruct`].
#[doc(hidden)]
#[derive(Default)]
pub struct CDeclaration {
    /// The fields in C, without comments.
    pub(crate) code: String,
    /// The fields in C, with the comments of the author.
    pub(crate) text: String,
}

impl CDeclaration {
    /// Adds a field.
    pub fn field<F: CField>(&mut self, name: &str, docs: &[&str]) {
        let (of, dimensions) = (F::c_type(), F::dimensions());
        let line = format!("    {of} {name}{dimensions};");
        for doc in docs {
            let doc = doc.trim().replace("*/", "* /");
            self.text.push_str(&format!("    /* {doc} */\n"));
        }
        self.text.push_str(&format!("{line}\n"));
        self.code.push_str(&line);
    }
}

/// A field type of a [`CStruct`]: a fixed-size integer or float, or an array of them.
///
/// # Safety
/// Every bit pattern must be a valid value of the type, and the type must have the layout of the C type that it names.
#[expect(unsafe_code, reason = "values are read from a caller's memory")]
pub unsafe trait CField: Copy {
    /// The element's type in C.
    fn c_type() -> &'static str;

    /// The lengths of arrays in C: `[4]`.
    #[must_use]
    fn dimensions() -> String {
        String::new()
    }
}

macro_rules! fields {
    ($($of:ty: $c:literal),*) => {
        $(
            // SAFETY: the type is the same number in Rust and in C, and every bit pattern is valid.
            #[expect(unsafe_code, reason = "see the trait")]
            unsafe impl CField for $of {
                fn c_type() -> &'static str {
                    $c
                }
            }
        )*
    };
}

fields! {
    u8: "uint8_t", u16: "uint16_t", u32: "uint32_t", u64: "uint64_t",
    i8: "int8_t", i16: "int16_t", i32: "int32_t", i64: "int64_t",
    f32: "float", f64: "double"
}

// SAFETY: an array has the layout of a C array, and every bit pattern is valid, as for its elements.
#[expect(unsafe_code, reason = "see the trait")]
unsafe impl<F: CField, const N: usize> CField for [F; N] {
    fn c_type() -> &'static str {
        F::c_type()
    }

    fn dimensions() -> String {
        format!("[{N}]{}", F::dimensions())
    }
}

/// A struct that C programs read and write, declared with [`c_struct!`](crate::c_struct).
///
/// # Safety
/// The type must have the layout of the C struct that it declares, and every bit pattern must be a valid value of it.
/// So a `bool` and an enum cannot be fields.
#[expect(unsafe_code, reason = "values are read from a caller's memory")]
pub unsafe trait CStruct: Copy + Default + Send + 'static {
    #[doc(hidden)]
    fn declare(out: &mut CDeclaration);
}

/// Declares structs with C layout. Their fields are integers, floats, and arrays of them. Their comments also appear in
/// the game's header.
///
/// ```
/// twinstep_c::c_struct! {
///     /// What a player holds.
///     pub struct Pad {
///         /// The sum of: 1 left, 2 right, 4 jump.
///         pub held: u8,
///         /// The aim, in radians.
///         pub aim: f32,
///     }
/// }
/// ```
#[macro_export]
macro_rules! c_struct {
    ($(
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident {
            $($(#[doc = $doc:literal])* $field_vis:vis $field:ident: $of:ty),+ $(,)?
        }
    )+) => {
        $(
            $(#[doc = $about])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default, PartialEq)]
            $vis struct $name {
                $($(#[doc = $doc])* $field_vis $field: $of),+
            }

            // SAFETY: `repr(C)` gives it the layout, and each field is a `CField` (the calls below compile for no other
            // type).
            #[allow(unsafe_code)]
            unsafe impl $crate::CStruct for $name {
                fn declare(out: &mut $crate::CDeclaration) {
                    $(out.field::<$of>(stringify!($field), &[$($doc),*]);)+
                }
            }
        )+
    };
}

c_struct! {
    /// For a type that a game does not need.
    pub struct Unused {
        /// Not used.
        pub unused: u8,
    }
}
